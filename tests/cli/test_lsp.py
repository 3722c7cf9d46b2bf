"""``formal-llm lsp``: a client that speaks to it over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from formal_llm.cli.language_server import diagnose

GRAMMAR = '%order forward\nS -> wash* Meal 😀 Meal\nMeal -> eat | drink\nwash "Wash up"\n'


async def _talk(path: Path) -> tuple[list[types.Diagnostic], list[types.Diagnostic]]:
    """What the server reports of a text that is right, and of one that is not, behind an emoji."""
    client, told = LanguageClient("editor", "1"), asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda found: told.put_nowait(found))
    await client.start_io(sys.executable, "-m", "formal_llm", "lsp")
    try:
        await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        item = types.TextDocumentItem(path.as_uri(), "formal-llm-grammar", 1, GRAMMAR)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        first = (await asyncio.wait_for(told.get(), 60)).diagnostics
        document = types.VersionedTextDocumentIdentifier(version=2, uri=path.as_uri())
        change = types.TextDocumentContentChangeWholeDocument(GRAMMAR + "%limit 1 😀 eet")
        client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        second = (await asyncio.wait_for(told.get(), 60)).diagnostics
        await client.shutdown_async(None)
        client.exit(None)
    finally:
        await client.stop()
    return list(first), list(second)


@pytest.mark.slow
def test_a_session(tmp_path: Path) -> None:
    first, (wrong,) = asyncio.run(asyncio.wait_for(_talk(tmp_path / "g.cfg"), 120))
    assert first == []
    assert "unknown symbol in a limit: eet (did you mean eat?)" in wrong.message
    assert wrong.range.start == types.Position(4, 12)
    assert wrong.severity == types.DiagnosticSeverity.Error


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.cfg", "S -> a\nB -> b\n", (1, False)),
        ("a.cfg", "S -> a\n%limit 1 b\n", (1, True)),
        ("unsaved", "S -> a\n%limit 1 b\n", (1, True)),
        ("a.guard", "pay: pay\nrule first: aproved before pay\n", (1, True)),
        ("a.cfg", "S -> a\n", None),
    ],
)
def test_findings_have_a_place(name: str, text: str, expected: tuple[int, bool] | None) -> None:
    found = [(one.line, one.is_error) for one in diagnose(text, Path(name))]
    assert found == ([] if expected is None else [expected])
