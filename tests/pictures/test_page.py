"""Pages that stand alone."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.pictures.page import escape_text, html_page


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(max_size=40))
def test_no_text_becomes_a_tag(text: str) -> None:
    plain = Tags(html_page("t", "p { margin: 0; }", "<p>x</p>"))
    hostile = Tags(html_page(text, "p { margin: 0; }", f"<p>{escape_text(text)}</p>"))
    assert hostile.tags == plain.tags


def test_what_steers_is_made_visible() -> None:
    assert "\x1b" not in escape_text("\x1b[31m") and "\u202e" not in escape_text("\u202eevil")
    assert escape_text('<b a="1">') == "&lt;b a=&quot;1&quot;&gt;"


@pytest.mark.parametrize("images", [False, True])
def test_nothing_is_loaded_but_images_that_are_in_the_page(images: bool) -> None:
    page = html_page("t", "", "", images=images)
    assert "default-src 'none'" in page and "script-src" not in page
    assert ("img-src data:" in page) is images
