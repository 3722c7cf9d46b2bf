"""A page that stands alone: one file of HTML that loads nothing and runs nothing, whatever texts are shown in it."""

from __future__ import annotations

from html import escape

from formal_llm.pictures.visible import visible

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
    """The page.

    Args:
        title: as a text.
        style: its style sheet, as CSS.
        body: what is shown, as HTML; what others wrote stands in it as :func:`escape_text`.
        images: whether images that are written into the page are shown.
    """
    return _PAGE.format(
        title=escape_text(title), style=style.strip(), body=body, images="img-src data:; " if images else ""
    )


def escape_text(text: str) -> str:
    """A text as HTML: escaped, and signs that steer a terminal or turn the direction of writing made visible."""
    return escape(visible(text))
