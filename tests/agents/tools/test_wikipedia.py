"""Dumps of Wikipedia."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from formal_llm.agents.tools import wikipedia
from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.corpus_file import build_corpus
from formal_llm.agents.tools.wikipedia import WikipediaDump, plain_text
from formal_llm.errors import NotationError


def page(title: str, text: str, ns: int = 0, redirect: str | None = None) -> str:
    more = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        f"<page><title>{escape(title)}</title><ns>{ns}</ns><id>1</id>{more}<revision><id>2</id>"
        f'<contributor><username>A</username></contributor><text bytes="3" xml:space="preserve">{escape(text)}</text>'
        "</revision></page>\n"
    )


def dump(*pages: str) -> bytes:
    head = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    return (head + "<siteinfo><sitename>W</sitename></siteinfo>\n" + "".join(pages) + "</mediawiki>").encode()


PAGES = dump(
    page("A & B", "Text <of> A."),
    page("Talk:A", "Talk.", ns=1),
    page("Other", "#REDIRECT [[A & B]]", redirect="A &amp; B"),
    page("Ünïcode", "Zwei."),
)


@pytest.mark.parametrize(
    ("ending", "packed"), [(".xml", bytes), (".xml.bz2", bz2.compress), (".xml.gz", gzip.compress)]
)
def test_pages(tmp_path: Path, ending: str, packed: object) -> None:
    file = tmp_path / f"dump{ending}"
    file.write_bytes(packed(PAGES))  # type: ignore[operator]
    source = WikipediaDump(file, plain=str.upper)
    assert list(source.read()) == [
        Article("A & B", "TEXT <OF> A."),
        Article("Other", "#REDIRECT [[A & B]]", target="A & B"),
        Article("Ünïcode", "ZWEI."),
    ]
    assert source.share() == 1.0 and list(source.read(2)) == [Article("Ünïcode", "ZWEI.")]


def test_streams_of_bz2_behind_each_other(tmp_path: Path) -> None:
    file = tmp_path / "dump.xml.bz2"
    file.write_bytes(bz2.compress(PAGES[:200]) + bz2.compress(PAGES[200:]))
    assert len(list(WikipediaDump(file, plain=str).read())) == 3


def test_what_is_skipped_is_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "dump.xml"
    file.write_bytes(PAGES)
    seen: list[str] = []
    list(WikipediaDump(file, plain=lambda text: seen.append(text) or text).read(1))  # type: ignore[func-returns-value]
    assert seen == ["Zwei."]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.xml", PAGES[:-20], "no XML"),
        ("a.xml", b"not xml", "no XML"),
        ("a.xml", b"", "no XML"),
        ("a.xml.bz2", bz2.compress(PAGES)[:-20], "ends too early"),
        ("a.xml.bz2", PAGES, "damaged"),
        ("a.xml.gz", gzip.compress(PAGES)[:-20], "ends too early"),
        ("a.xml", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "no DOCTYPE"),
    ],
)
def test_damaged_dumps(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(NotationError, match=said) as caught:
        list(WikipediaDump(file, plain=str).read())
    assert caught.value.file == str(file) and caught.value.line is not None


def test_a_page_may_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wikipedia, "MOST_PAGE", 1000)
    file = tmp_path / "a.xml"
    file.write_bytes(dump(page("A", "x" * 200_000)))
    with pytest.raises(NotationError, match="more than 1,000 characters"):
        list(WikipediaDump(file, plain=str).read())


def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    file = tmp_path / "a.xml.bz2"
    file.write_bytes(bz2.compress(dump(*(page(f"T{n}", f"{n} " * 500) for n in range(1000)))))
    tracemalloc.start()
    try:
        assert sum(len(article.title) > 0 for article in WikipediaDump(file, plain=str).read()) == 1000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # of 2.4 MB
    finally:
        tracemalloc.stop()


MARKUP = """{{Infobox river | name = Danube | length = {{convert|2850|km}} }}
[[File:Danube.jpg|thumb|The '''Danube''' in [[Vienna]]]]
The '''Danube''' ({{IPAc-en|d}}; [[German language|German]]: ''Donau'') is a
[[river]] in [[Europe]].<ref name="a">A note. Really.</ref>
It flows&nbsp;into the [[Black Sea]].<!-- hidden -->

{| class="wikitable"
| a || b
|}
== History ==
Romans knew it.<ref>Another.</ref>
* First [[item]]
== References ==
{{reflist}}
Not read.
[[Category:Rivers]]"""


def test_markup_is_taken_off() -> None:
    pytest.importorskip("mwparserfromhell", reason="the extra 'wikipedia' is not installed")
    text = plain_text(MARKUP)
    assert text.split("\n") == [
        "The Danube (German: Donau) is a river in Europe. It flows into the Black Sea.",
        "Romans knew it.",
        "First item",
    ]
    for absent in (
        "{{",
        "[[",
        "''",
        "<ref",
        "note",
        "thumb",
        "wikitable",
        "hidden",
        "History",
        "Not read",
        "Category",
        "Infobox",
    ):
        assert absent not in text


def test_a_dump_becomes_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(PAGES)
    assert build_corpus(WikipediaDump(file, plain=str), tmp_path / "c.sqlite") == 2
    session = Corpus(tmp_path / "c.sqlite").session()
    assert session.search("other") == "Text <of> A."
    assert session.search("unicode") == "Could not find unicode. Similar: ['Ünïcode']."
