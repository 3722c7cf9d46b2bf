"""``formal-llm corpus``: corpora that agents search on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.cli.console import command, counted, err, print_text, progress_bars
from formal_llm.cli.help_pages import PlainGroup
from formal_llm.errors import InputError

if TYPE_CHECKING:
    from formal_llm.agents.tools.articles import ArticleSource

BUILD_HELP = """Build a corpus that agents search, of a dump of Wikipedia or of articles of one's own.

Files: a dump of MediaWiki (.xml, .xml.bz2, .xml.gz), JSON (.json, .jsonl: an object a line with title and text, or what
MediaWiki's API answers with extracts), or text (.txt: "# Title", and the article below it).

The corpus is moved to its place when it is whole. Stopped with Ctrl-C, the same command goes on where it was.

Examples:

  formal-llm corpus build enwiki-latest-pages-articles.xml.bz2 --out wikipedia.sqlite

  formal-llm corpus build notes.txt --out notes.sqlite
"""
SEARCH_HELP = """Search a corpus as an agent does: the first five sentences of an article, or similar titles.

Examples:

  formal-llm corpus search Danube

  formal-llm corpus search Danube --lookup "Black Sea" --corpus wikipedia.sqlite
"""
app = typer.Typer(cls=PlainGroup, help="Corpora that agents search on this machine.", no_args_is_help=True)


@app.command(help=BUILD_HELP)
@command
def build(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A dump, or a file of articles.")],
    to: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The corpus; what is there is replaced in the end.")
    ],
) -> None:
    """Build a corpus."""
    from formal_llm.agents.tools.corpus_file import build_corpus

    articles = articles_of(source)
    with progress_bars() as bars:
        bar = bars.add_task("", total=100, said="no pages yet")

        def show(read: int, share: float) -> None:
            bars.update(bar, completed=int(100 * share), said=counted(read, "page"))

        try:
            count = build_corpus(articles, to, on_progress=show)
        except KeyboardInterrupt:
            err().print("what was read is kept: the same command goes on from there")
            raise
    print_text(f"{to}: {counted(count, 'article')}")


@app.command(help=SEARCH_HELP)
@command
def search(
    query: Annotated[str, typer.Argument(help="A title, or words.")],
    lookup: Annotated[str | None, typer.Option(help="Show the sentences of the article with this text.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The corpus; the small shipped one if left out.")
    ] = None,
) -> None:
    """Search a corpus."""
    from formal_llm.agents.tools.corpus import Corpus

    session = (Corpus.shipped() if corpus is None else Corpus(corpus)).session()
    print_text(session.search(query))
    while lookup is not None:
        found = session.lookup(lookup)
        print_text(found)
        if not found.startswith("("):
            break


def articles_of(path: Path) -> ArticleSource:
    """The articles of a file, by its ending.

    Raises:
        InputError: it cannot be read, or has an unknown ending.
    """
    from formal_llm.agents.tools.articles import JsonArticles, TextArticles
    from formal_llm.agents.tools.wikipedia import WikipediaDump

    name = path.name.lower()
    try:
        if name.endswith((".xml", ".xml.bz2", ".xml.gz")):
            return WikipediaDump(path)
        if name.endswith((".json", ".jsonl")):
            return JsonArticles(path)
        if name.endswith(".txt"):
            return TextArticles(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    raise InputError(f"{path}: articles are read from .xml, .xml.bz2, .xml.gz, .json, .jsonl and .txt files")
