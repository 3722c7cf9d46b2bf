"""The language server: errors and warnings of rules at their place, in any editor. Needs pygls (the extra ``lsp``)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from warnings import catch_warnings

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from formal_llm import __version__
from formal_llm.automata.notation.files import endings, read_rules_text
from formal_llm.errors import FormalLLMError, GrammarWarning
from formal_llm.guard.rules.reading import read_rules as read_guard
from formal_llm.procedures.reading import read_procedure

server = LanguageServer("formal-llm", __version__)


class Finding(NamedTuple):
    """What is wrong with a text: the place, from 0, the message, and whether it is an error or a warning."""

    line: int
    column: int
    message: str
    is_error: bool


def diagnose(text: str, path: Path) -> list[Finding]:
    """What is wrong with the text of a file of rules; a file that is not known by its ending is taken for a grammar."""
    if path.suffix not in (*endings(), ".guard", ".procedure"):
        path = path.with_suffix(".cfg")
    found: list[Exception | str] = []
    with catch_warnings(record=True, action="always") as caught:
        try:
            if path.suffix == ".guard":
                read_guard(text, str(path))
            elif path.suffix == ".procedure":
                read_procedure(text, str(path))
            else:
                read_rules_text(text, path)
        except (FormalLLMError, ValueError) as error:
            found.append(error)
    found += [one.message for one in caught if isinstance(one.message, GrammarWarning)]
    return [
        Finding(
            (getattr(one, "line", None) or 1) - 1,
            (getattr(one, "column", None) or 1) - 1,
            str(one),
            not isinstance(one, GrammarWarning),
        )
        for one in found
    ]


def _publish(ls: LanguageServer, uri: str) -> None:
    document = ls.workspace.get_text_document(uri)
    lines, codec = document.lines, ls.workspace.position_codec
    rows = []
    for found in diagnose(document.source, Path(uris.to_fs_path(uri) or "untitled.cfg")):
        # The client counts in units of UTF-16 where nothing else was agreed.
        begin, end = (
            codec.position_to_client_units(lines, types.Position(found.line, found.column + more)) for more in (0, 1)
        )
        severity = types.DiagnosticSeverity.Error if found.is_error else types.DiagnosticSeverity.Warning
        rows.append(types.Diagnostic(types.Range(begin, end), found.message, severity=severity, source="formal-llm"))
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, rows, document.version))


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
def read_document(
    ls: LanguageServer,
    params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams | types.DidSaveTextDocumentParams,
) -> None:
    """Report what is wrong with a text that was opened, changed or saved."""
    _publish(ls, params.text_document.uri)
