"""A dump of Wikipedia, or of any MediaWiki, as articles: read page by page, so that memory does not grow with it.

The file is what https://dumps.wikimedia.org calls ``pages-articles``: XML, as it is or compressed (``.bz2``, ``.gz``).
Markup is taken off by ``mwparserfromhell`` (the extra ``wikipedia``); templates, tables, pictures, notes and headings
are left out, and whatever is below "References", "See also" and the like.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NoReturn, cast
from xml.parsers import expat

from formal_llm.agents.tools.articles import Article, ArticleFile
from formal_llm.authored.files import open_file
from formal_llm.errors import MissingDependency, NotationError

#: The most characters of one page; Wikipedia allows two million bytes.
MOST_PAGE = 16_000_000
_CHUNK = 1 << 16
_TAGS = """
    ref references table gallery math chem timeline score source syntaxhighlight style script imagemap
"""
_LEFT_OUT = frozenset(_TAGS.split())
_NO_TEXT = re.compile(
    r"\s*:?\s*(file|image|category|datei|bild|kategorie|fichier|catégorie|archivo|categoría)\s*:", re.IGNORECASE
)
_BACK_MATTER = frozenset(
    [
        "references",
        "see also",
        "external links",
        "notes",
        "further reading",
        "bibliography",
        "sources",
        "citations",
        "footnotes",
    ]
)


class WikipediaDump(ArticleFile):
    """The articles of a dump, in its order; redirects are articles that have a target.

    Args:
        path: the file: ``.xml``, ``.xml.bz2`` or ``.xml.gz``.
        plain: makes text of markup; :func:`plain_text` where left out.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | Path, plain: Callable[[str], str] | None = None) -> None:
        super().__init__(path)
        self._plain = plain or plain_text

    def read(self, skip: int = 0) -> Iterator[Article]:
        """The articles in their order, without a number of first ones, whose markup is not looked at.

        Raises:
            NotationError: it is no dump, ends too early, or is damaged; with the line.
            MissingDependency: ``mwparserfromhell`` is not installed.
        """
        pages = _PageParser(self.path)
        count = 0
        with open_file(self.path) as raw:
            ending = self.path.suffix.lower()
            opened = bz2.BZ2File(raw) if ending == ".bz2" else gzip.GzipFile(fileobj=raw) if ending == ".gz" else raw
            stream = cast("IO[bytes]", opened)
            while True:
                try:
                    chunk = stream.read(_CHUNK)
                except (EOFError, OSError) as error:
                    pages.raise_error(f"the file is damaged, or ends too early: {error}")
                self._at = raw.tell()
                for page in pages.feed(chunk):
                    count += 1
                    if count > skip:
                        yield page if page.target is not None else page._replace(text=self._plain(page.text))
                if not chunk:
                    return


class _PageParser:
    """Puts together pages from the events of an XML parser. Keeps one page at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ready: list[Article] = []
        self.page: dict[str, str] = {}
        self.inside: str | None = None
        self.parts: list[str] = []
        self.length = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start_element
        self.parser.EndElementHandler = self._end_element
        self.parser.CharacterDataHandler = self._add_text
        # Dumps declare no entities; files that do are made to fill the memory.
        self.parser.StartDoctypeDeclHandler = lambda *_: self.raise_error("a dump has no DOCTYPE")

    def feed(self, chunk: bytes) -> list[Article]:
        """The pages that end in this part of the file; an empty part is the end of it."""
        try:
            self.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            self.raise_error(f"this is no XML: {expat.ErrorString(error.code)}", error.lineno)
        pages, self.ready = self.ready, []
        return pages

    def raise_error(self, problem: str, line: int | None = None) -> NoReturn:
        raise NotationError(
            problem, file=str(self.path), line=line or self.parser.CurrentLineNumber,
            suggestion="a dump is a file such as enwiki-latest-pages-articles.xml.bz2",
        ) from None  # fmt: skip

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        if name == "page":
            self.page = {}
        elif name == "redirect":
            self.page["redirect"] = attributes.get("title", "")
        elif name in ("title", "ns", "text"):
            self.inside, self.parts, self.length = name, [], 0

    def _add_text(self, data: str) -> None:
        if self.inside is not None:
            self.parts.append(data)
            self.length += len(data)
            if self.length > MOST_PAGE:
                self.raise_error(f"a page has more than {MOST_PAGE:,} characters")

    def _end_element(self, name: str) -> None:
        if name == self.inside:
            self.page[name] = "".join(self.parts)
            self.inside, self.parts = None, []
        elif name == "page" and self.page.get("ns", "0").strip() == "0" and self.page.get("title"):
            self.ready.append(Article(self.page["title"], self.page.get("text", ""), target=self.page.get("redirect")))


def plain_text(markup: str) -> str:
    """The text of a page, a paragraph a line.

    Raises:
        MissingDependency: ``mwparserfromhell`` is not installed.
    """
    try:
        import mwparserfromhell
        from mwparserfromhell.nodes import Comment, Heading, Node, Tag, Template, Text, Wikilink
        from mwparserfromhell.wikicode import Wikicode
    except ImportError as error:
        raise MissingDependency("dumps of Wikipedia need: pip install 'formal-llm[wikipedia]'") from error
    kept: list[Node] = []
    for node in mwparserfromhell.parse(markup).nodes:
        if isinstance(node, Heading) and node.title.strip_code().strip().casefold() in _BACK_MATTER:
            break
        left_out = isinstance(node, (Comment, Heading, Template)) or (
            (isinstance(node, Tag) and str(node.tag).strip().lower() in _LEFT_OUT)
            or (isinstance(node, Wikilink) and _NO_TEXT.match(str(node.title)) is not None)
        )
        if isinstance(node, Tag) and node.wiki_markup in ("*", "#", ":", ";"):  # an item of a list
            kept.append(Text("\n\n"))
        elif not left_out:
            kept.append(node)
    text = str(Wikicode(kept).strip_code(normalize=True, collapse=True))
    text = re.sub(r"(?<!\n)[ \t]*\n(?![ \t]*\n)", " ", text)  # a line that continues
    text = re.sub(r"[ \t\u00a0]+", " ", re.sub(r"\((\s*[,;])*\s*\)", "", text))
    text = re.sub(r"\((?:\s*[,;])+\s*", "(", text)  # what a template left behind
    lines = (re.sub(r" +([,.;:])", r"\1", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
