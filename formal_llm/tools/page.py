"""A self-contained HTML page: it loads no resources and runs no scripts, whatever texts it shows."""

from __future__ import annotations

from html import escape

from formal_llm.errors import visible

#: The colours of reports, in a style sheet: light and dark as the reader's machine is.
PALETTE = """
:root { color-scheme: light dark; --line: #c8c8c8; --soft: #5f5f5f; --user: #0a58ca; --model: #2e7d32;
  --world: #8a5a00; --bad: #b00020; --box: #f6f6f6; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa; --user: #7ab0ff; --model: #7fd183;
  --world: #e0b060; --bad: #ff8a8a; --box: #222; } }
html { background: Canvas; color: CanvasText; }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {images}style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_page(title: str, style: str, body: str, *, images: bool = False) -> str:
    """Return the page.

    Args:
        title: the title, as plain text.
        style: the style sheet, as CSS.
        body: the content, as HTML; texts by others must be escaped with :func:`escape_text`.
        images: whether images embedded in the page are displayed.
    """
    return _PAGE.format(
        title=escape_text(title), style=style.strip(), body=body, images="img-src data:; " if images else ""
    )


def escape_text(text: str) -> str:
    """Escape a text for HTML and make signs visible that control a terminal or the direction of writing."""
    return escape(visible(text))
