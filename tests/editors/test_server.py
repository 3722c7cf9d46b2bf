"""The language server, spoken to by a client over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

GRAMMAR = '%order forward\nS -> wash* Meal 😀 Meal\nMeal -> eat | drink\nwash "Wash up"\n'


class Editor:
    """A client with one document."""

    def __init__(self, path: Path) -> None:
        self.uri = path.as_uri()
        self.client = LanguageClient("editor", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda told: self.told.put_nowait(told))

    async def start(self) -> None:
        await self.client.start_io(sys.executable, "-m", "formal_llm", "lsp")
        await self.client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        self.client.initialized(types.InitializedParams())

    async def open(self, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(self.uri, "formal-llm-grammar", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return list((await asyncio.wait_for(self.told.get(), 60)).diagnostics)

    async def change(self, version: int, text: str) -> list[types.Diagnostic]:
        await self.type(version, text)
        return list((await asyncio.wait_for(self.told.get(), 60)).diagnostics)

    async def type(self, version: int, text: str) -> None:
        document = types.VersionedTextDocumentIdentifier(version=version, uri=self.uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def at(self, line: int, character: int) -> dict[str, object]:
        return {
            "text_document": types.TextDocumentIdentifier(self.uri),
            "position": types.Position(line, character),
        }

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


def talk(path: Path, conversation) -> None:
    async def all_of_it() -> None:
        editor = Editor(path)
        await editor.start()
        try:
            await conversation(editor)
        finally:
            await editor.stop()

    asyncio.run(asyncio.wait_for(all_of_it(), 120))


def test_a_session(tmp_path: Path) -> None:
    (tmp_path / "tools.cfg").write_text("\nTool -> t\n")

    async def conversation(editor: Editor) -> None:
        assert await editor.open(GRAMMAR) == []

        # Behind an emoji, which is two units of UTF-16.
        said = await editor.client.text_document_hover_async(types.HoverParams(**editor.at(1, 20)))
        assert "what it can be, limits aside: 2" in said.contents.value
        assert await editor.client.text_document_hover_async(types.HoverParams(**editor.at(0, 9))) is None

        found = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(1, 12)))
        assert (found.uri, found.range.start) == (editor.uri, types.Position(2, 0))

        listed = await editor.client.text_document_completion_async(types.CompletionParams(**editor.at(2, 8)))
        assert {"S", "Meal", "wash", "eat", "drink"} <= {item.label for item in listed.items}

        # Only the last of what is typed quickly is told.
        await editor.type(2, GRAMMAR + "A ->")
        (wrong,) = await editor.change(3, GRAMMAR + "%limit 1 😀 eet")
        assert wrong.message.startswith("unknown symbol in a limit: eet (did you mean eat?)")
        assert wrong.range == types.Range(types.Position(4, 12), types.Position(4, 15))
        assert wrong.severity == types.DiagnosticSeverity.Error
        assert editor.told.empty()

        assert await editor.change(4, '%import "tools.cfg"\n%order forward\nS -> Tool') == []
        found = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(2, 6)))
        assert found.uri.endswith("/tools.cfg")
        assert found.range.start.line == 1
        found = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(0, 12)))
        assert found.uri.endswith("/tools.cfg")

        # A file that is imported is saved, with an error.
        (tmp_path / "tools.cfg").write_text("Tool -> -> t")
        document = types.TextDocumentIdentifier((tmp_path / "tools.cfg").as_uri())
        editor.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
        (wrong,) = (await asyncio.wait_for(editor.told.get(), 60)).diagnostics
        assert "tools.cfg:1:9: unexpected '->'" in wrong.message

    talk(tmp_path / "g.cfg", conversation)
