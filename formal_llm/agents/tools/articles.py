"""Articles, and the files that hold them: our own text form, and JSON (lines, or what MediaWiki's ``extracts`` answer).

The text form is a line ``# Title``, perhaps with other names behind ``=``, and paragraphs of text below it,
an empty line between them. Lines that begin with ``%%`` are remarks::

    # Danube = Donau = Duna
    The Danube is a river in Europe. It rises in Germany and flows into the Black Sea.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from formal_llm.authored.files import open_file, parse_json, read_text
from formal_llm.errors import NotationError

#: A longer line of JSON is refused.
MOST_LINE = 16_000_000


class Article(NamedTuple):
    """A page: its title, its text, and other titles under which it is found.

    A page without text and with a target is a redirect: another title for the target.
    """

    title: str
    text: str = ""
    also: tuple[str, ...] = ()
    target: str | None = None


class ArticleSource(Protocol):
    """Where articles come from."""

    def read(self) -> Iterator[Article]:
        """The articles."""
        ...


class TextArticles:
    """The articles of a file in our text form.

    Raises:
        NotationError: the file cannot be read, or has text before the first title, or a title without text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._text = read_text(path)
        self._articles = list(self._parse_articles())

    def read(self) -> Iterator[Article]:
        """The articles in their order."""
        yield from self._articles

    def _parse_articles(self) -> Iterator[Article]:
        title: tuple[str, ...] = ()
        begun = 0
        lines: list[str] = []
        for number, line in enumerate([*self._text.split("\n"), "#"], 1):
            if line.startswith("%%"):
                continue
            if not line.startswith("#"):
                if line.strip() and not title:
                    raise NotationError(
                        "there is text before the first title", file=str(self.path), line=number, source_line=line,
                        suggestion="begin each article with a line such as: # Danube",
                    )  # fmt: skip
                lines.append(line.strip())
                continue
            if title:
                text = re.sub(r"\n\s*", "\n", re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(lines))).strip()
                if not text:
                    raise NotationError(f"the article {title[0]} has no text", file=str(self.path), line=begun)
                yield Article(title[0], text, title[1:])
            title = tuple(part.strip() for part in line.lstrip("#").split(" = "))
            lines, begun = [], number
            if not all(title) and number <= self._text.count("\n") + 1:
                raise NotationError("a title is empty", file=str(self.path), line=number, source_line=line)


class JsonArticles:
    """The articles of a JSON file.

    It has an object a line with ``title`` and ``text`` or ``extract``, or is an answer of MediaWiki's API, with
    ``query.pages``. A ``redirect`` is the title of the page that is meant.

    Lines are read one by one: the file may be larger than the memory. An answer of the API may have 16 MB.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> Iterator[Article]:
        """The articles in their order.

        Raises:
            NotationError: a line is no article; with its number.
        """
        with open_file(self.path) as file:
            number = 0
            while line := file.readline(MOST_LINE + 1):
                number += 1
                if len(line) > MOST_LINE:
                    raise NotationError(f"the line has more than {MOST_LINE:,} bytes", file=str(self.path), line=number)
                yield from self._read_line(line, number)

    def _read_line(self, line: bytes, number: int) -> Iterator[Article]:
        if not line.strip():
            return
        try:
            found = parse_json(line)
        except ValueError as error:
            message = f"this is no JSON: {error}"
            raise NotationError(
                message, file=str(self.path), line=number, suggestion="write one object with title and text a line"
            ) from None
        query = found.get("query") if isinstance(found, dict) else None
        pages = query.get("pages") if isinstance(query, dict) else [found]
        for page in pages.values() if isinstance(pages, dict) else pages if isinstance(pages, list) else [found]:
            yield self._read_article(page, number)

    def _read_article(self, page: object, number: int) -> Article:
        if isinstance(page, dict) and isinstance(page.get("title"), str):
            text = page.get("text", page.get("extract"))
            if isinstance(page.get("redirect"), str):
                return Article(page["title"], target=page["redirect"])
            if isinstance(text, str):
                return Article(page["title"], text)
        shown = json.dumps(page, ensure_ascii=False)[:80]
        raise NotationError(
            f"this is no article: {shown}", file=str(self.path), line=number, expected=("title", "text")
        )
