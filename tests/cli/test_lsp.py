"""``formal-llm lsp``: what is wrong where, and a client that is told so over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from formal_llm.cli.lsp import Finding, find_problems
from tests.cli.inside import invoke


def test_an_error_at_its_place() -> None:
    (found,) = find_problems("S -> a\n%limit 1 washs", Path("g.cfg"))
    assert (found.line, found.column, found.end, found.is_error) == (1, 9, 14, True)
    assert found.message.startswith("unknown symbol in a limit: washs")


def test_warnings_and_nothing() -> None:
    (found,) = find_problems("S -> a\nBee -> b", Path("g.cfg"))
    assert found == Finding(1, 0, 3, "Bee cannot be reached from the start symbol S", is_error=False)
    assert find_problems("S -> a", Path("g.cfg")) == []


@pytest.mark.parametrize("text", ["", "\n", "S ->", 'S -> "', "\ufeffS -> x y\r", "S -> a |", "#", "%", "(" * 50, "\0"])
@pytest.mark.parametrize("ending", [".cfg", ".pda", ".agent", ".mmd", ".guard", ".procedure", ".txt"])
def test_whatever_is_half_written_is_told_within_the_text(text: str, ending: str) -> None:
    lines = text.split("\n")
    for found in find_problems(text, Path(f"x{ending}")):
        assert 0 <= found.line < len(lines)
        assert 0 <= found.column <= len(lines[found.line])
        assert found.end > found.column or not lines[found.line]


def test_rules_for_calls_and_procedures_are_read_as_such() -> None:
    text = "mail: send_mail | post\npay: pay_invoice\nrule few: at most 3 mail\nrule first: male before pay\n"
    (found,) = find_problems(text, Path("shop.guard"))
    assert (found.line, found.column) == (3, 12)
    assert "did you mean mail?" in found.message
    assert find_problems(text.replace("male", "mail"), Path("shop.guard")) == []
    text = "check look(x)\ngoal action act(x)\n    lok(x) == 1\n"
    (found,) = find_problems(text, Path("my.procedure"))
    assert (found.line, found.column) == (2, 4)
    assert "did you mean look?" in found.message


def test_without_pygls_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    done = invoke("lsp")
    assert done.exit_code == 2
    assert 'pip install "formal-llm[lsp]"' in done.stderr


def test_an_editor_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    uri = (tmp_path / "g.cfg").as_uri()
    grammar = '%order forward\nS -> wash* Meal\nMeal -> eat | drink\nwash "Wash up"\n'

    async def talk() -> None:
        client = LanguageClient("editor", "1")
        told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: told.put_nowait(params))
        await client.start_io(sys.executable, "-m", "formal_llm", "lsp")
        try:
            await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
            client.initialized(types.InitializedParams())
            item = types.TextDocumentItem(uri, "formal-llm-grammar", 1, grammar)
            client.text_document_did_open(types.DidOpenTextDocumentParams(item))
            assert list((await told.get()).diagnostics) == []
            document = types.VersionedTextDocumentIdentifier(version=2, uri=uri)
            whole = types.TextDocumentContentChangeWholeDocument(f'{grammar}S "😀" -> eat\n%limit 1 eet')
            client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))
            (wrong,) = (await told.get()).diagnostics
            assert wrong.message.startswith("unknown symbol in a limit: eet (did you mean eat?)")
            assert wrong.range == types.Range(types.Position(5, 9), types.Position(5, 12))
            assert wrong.severity == types.DiagnosticSeverity.Error
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(asyncio.wait_for(talk(), 20))
