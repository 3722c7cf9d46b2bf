"""``formal-llm lsp``: errors and warnings of rules in an editor, by the Language Server Protocol.

Needs pygls (the extra ``lsp``), which is imported when the server starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings

from formal_llm import __version__
from formal_llm.automata.notation.files import endings, read_rules_text
from formal_llm.cli.console import command
from formal_llm.errors import FormalLLMError, GrammarWarning, NotationError

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

HELP = """The language server of the notations, for editors: errors and warnings while rules are written.

It speaks the Language Server Protocol on standard input and output, and needs the extra lsp.

Examples:

  pip install "formal-llm[lsp]"

  formal-llm lsp
"""
#: Where a name ends, for the part of a line that is underlined.
_ENDS = ' \t,|()[]{}"#;'


@dataclass(frozen=True, slots=True)
class Finding:
    """A report about a text of rules; line and columns are counted from 0, and ``end`` is the column behind it."""

    line: int
    column: int
    end: int
    message: str
    is_error: bool = True


@command
def lsp() -> None:
    """Serve an editor until it hangs up."""
    try:
        server = build_server()
    except ModuleNotFoundError as missing:
        if missing.name not in ("pygls", "lsprotocol"):
            raise
        raise FormalLLMError('the language server needs pygls: pip install "formal-llm[lsp]"') from None
    server.start_io()


def find_problems(text: str, path: Path) -> list[Finding]:
    """The errors and warnings of a text of rules.

    Args:
        text: the text.
        path: the file that it is, or is to be, in; its ending determines the notation.
    """
    found = []
    with catch_warnings(record=True, action="always") as caught:
        try:
            if path.suffix == ".guard":
                from formal_llm.guard.rules.reading import read_rules  # the server alone needs all notations

                read_rules(text, str(path))
            elif path.suffix == ".procedure":
                from formal_llm.procedures.reading import read_procedure

                read_procedure(text, str(path))
            else:
                read_rules_text(text, path)
        except NotationError as error:
            expected = f"expected: {', '.join(error.expected)}" if error.expected else None
            message = "\n".join(filter(None, (error.problem, expected, error.suggestion)))
            found.append(_place(error, message, text, path, is_error=True))
        except (FormalLLMError, ValueError) as error:
            found.append(Finding(0, 0, 1, str(error)))
    warned = (one.message for one in caught if isinstance(one.message, GrammarWarning))
    return found + [_place(one, one.problem, text, path, is_error=False) for one in warned]


def _place(problem: NotationError | GrammarWarning, message: str, text: str, path: Path, is_error: bool) -> Finding:
    lines = text.split("\n")
    if problem.file is not None and problem.file != str(path):  # a file that this one names
        where = "" if problem.line is None else f":{problem.line}:{problem.column}"
        return Finding(0, 0, len(lines[0]), f"{problem.file}{where}: {message}", is_error)
    line = min((problem.line or 1) - 1, len(lines) - 1)
    column = min((problem.column or 1) - 1, len(lines[line]))
    end = next((at for at in range(column, len(lines[line])) if lines[line][at] in _ENDS), len(lines[line]))
    return Finding(line, column, max(end, column + 1), message, is_error)


def build_server() -> LanguageServer:
    """The server: what is opened and changed is read, and what is found is published."""
    from lsprotocol import types
    from pygls import uris
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("formal-llm", __version__)

    def publish(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        path = Path(uris.to_fs_path(uri) or "untitled.cfg")
        if path.suffix not in (*endings(), ".guard", ".procedure"):
            path = path.with_suffix(".cfg")
        codec = server.workspace.position_codec  # clients count in units of UTF-16 where nothing else was agreed

        def encode(line: int, column: int) -> types.Position:
            return codec.position_to_client_units(document.lines, types.Position(line, column))

        found = [
            types.Diagnostic(
                types.Range(encode(one.line, one.column), encode(one.line, one.end)),
                one.message,
                severity=types.DiagnosticSeverity.Error if one.is_error else types.DiagnosticSeverity.Warning,
                source="formal-llm",
            )
            for one in find_problems(document.source.replace("\r\n", "\n"), path)
        ]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def open_text(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def change_text(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def close_text(params: types.DidCloseTextDocumentParams) -> None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    return server
