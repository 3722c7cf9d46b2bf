"""The language server: what :class:`~formal_llm.editors.document.Document` knows, in the Language Server Protocol.

It is started by ``formal-llm lsp``, and speaks on standard input and output. Needs pygls (the extra ``lsp``).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from formal_llm import __version__
from formal_llm.automata.notation.files import endings
from formal_llm.editors.document import Document, DocumentFinding

#: Seconds without a key before a text is read.
_CALM = 0.2
_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}

server = LanguageServer("formal-llm", __version__)
_documents: dict[str, Document] = {}
_turns: dict[str, int] = {}


def _get_path(uri: str) -> Path:
    """The file of a document; one that is not saved yet is taken for a grammar where its name does not determine it."""
    path = Path(uris.to_fs_path(uri) or "untitled.cfg")
    return path if path.suffix in (*endings(), ".guard", ".procedure") else path.with_suffix(".cfg")


def _read_document(ls: LanguageServer, uri: str) -> Document:
    text = ls.workspace.get_text_document(uri).source.replace("\r\n", "\n")
    known = _documents.get(uri)
    if known is None or known.text != text:
        known = _documents[uri] = Document(text, _get_path(uri), known)
    return known


def _publish_findings(ls: LanguageServer, uri: str) -> None:
    document = ls.workspace.get_text_document(uri)
    found = [_build_diagnostic(ls, uri, one) for one in _read_document(ls, uri).findings]
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))


def _build_diagnostic(ls: LanguageServer, uri: str, found: DocumentFinding) -> types.Diagnostic:
    place = types.Range(
        _encode_position(ls, uri, found.line, found.column), _encode_position(ls, uri, found.line, found.end)
    )
    return types.Diagnostic(place, found.message, severity=_SEVERITIES[found.severity], source="formal-llm")


def _encode_position(ls: LanguageServer, uri: str, line: int, column: int) -> types.Position:
    """A place as the client counts, which is in units of UTF-16 where nothing else was agreed."""
    lines = ls.workspace.get_text_document(uri).lines
    return ls.workspace.position_codec.position_to_client_units(lines, types.Position(line, column))


def _decode_position(ls: LanguageServer, uri: str, place: types.Position) -> types.Position:
    lines = ls.workspace.get_text_document(uri).lines
    got = ls.workspace.position_codec.position_from_client_units(lines, place)
    return types.Position(got.line, got.character)


def opened(ls: LanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Read a text that was opened."""
    _publish_findings(ls, params.text_document.uri)


async def changed(ls: LanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Read a text once typing has paused for a moment."""
    uri = params.text_document.uri
    turn = _turns[uri] = _turns.get(uri, 0) + 1
    await asyncio.sleep(_CALM)
    if _turns.get(uri) == turn:
        _publish_findings(ls, uri)


def saved(ls: LanguageServer, params: types.DidSaveTextDocumentParams) -> None:
    """Read what is open again: it may import what was saved."""
    for uri in list(_documents):
        if "import" in _documents[uri].text or uri == params.text_document.uri:
            del _documents[uri]
            _publish_findings(ls, uri)


def closed(ls: LanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget a text."""
    uri = params.text_document.uri
    _documents.pop(uri, None)
    _turns.pop(uri, None)
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def hover(ls: LanguageServer, params: types.HoverParams) -> types.Hover | None:
    """What a name means."""
    uri = params.text_document.uri
    place = _decode_position(ls, uri, params.position)
    text = _read_document(ls, uri).hover(place.line, place.character)
    return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def completion(ls: LanguageServer, params: types.CompletionParams) -> types.CompletionList:
    """The names that may be meant."""
    uri = params.text_document.uri
    place = _decode_position(ls, uri, params.position)
    names = _read_document(ls, uri).names
    items = []
    for name in names.completions(place.line, place.character):
        word = name in names.look.words
        kind = types.CompletionItemKind.Keyword if word else types.CompletionItemKind.Variable
        if name in names.rules:
            kind = types.CompletionItemKind.Class
        items.append(types.CompletionItem(name, kind=kind))
    return types.CompletionList(is_incomplete=False, items=items)


def definition(ls: LanguageServer, params: types.DefinitionParams) -> types.Location | None:
    """Where a name has its rule; of an import, the file."""
    uri = params.text_document.uri
    place = _decode_position(ls, uri, params.position)
    names = _read_document(ls, uri).names
    imported = names.imported_at(place.line)
    if imported is not None:
        start = types.Position(0, 0)
        return types.Location(imported.as_uri(), types.Range(start, start))
    name = names.at(place.line, place.character)
    found = names.definition(name) if name is not None else None
    if name is None or found is None:
        return None
    if found.file == names.file:
        begin, end = (_encode_position(ls, uri, found.line, found.column + more) for more in (0, len(name)))
        return types.Location(uri, types.Range(begin, end))
    begin, end = (types.Position(found.line, found.column + more) for more in (0, len(name)))
    return types.Location(found.file.as_uri(), types.Range(begin, end))


server.feature(types.TEXT_DOCUMENT_DID_OPEN)(opened)
server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)
server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["%"]))(completion)
server.feature(types.TEXT_DOCUMENT_DEFINITION)(definition)
