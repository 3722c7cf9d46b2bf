"""``formal-llm lsp``: the language server of the notations, on standard input and output."""

from __future__ import annotations

from formal_llm.cli.console import command
from formal_llm.errors import FormalLLMError

HELP = """The language server of the notations: errors and warnings as you type.

It speaks the Language Server Protocol on standard input and output, and needs the extra lsp.

Examples:

  pip install "formal-llm[lsp]"

  formal-llm lsp
"""


@command
def lsp() -> None:
    """Serve an editor until it hangs up."""
    try:
        from formal_llm.cli.language_server import server  # pygls is optional
    except ModuleNotFoundError as missing:
        if missing.name not in ("pygls", "lsprotocol"):
            raise
        raise FormalLLMError('the language server needs pygls: pip install "formal-llm[lsp]"') from None
    server.start_io()
