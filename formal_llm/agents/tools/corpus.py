"""Search and lookup over a corpus on this machine, with the semantics of ReAct (Yao et al. 2023, arXiv 2210.03629).

A :class:`Corpus` is read only and may be shared by any number of threads. What a run has open, its page and how far its
lookup came, is in a :class:`CorpusSession`: each run has one of its own::

    session = Corpus.shipped().session()
    session.search("Danube")       # the first five sentences, or titles that are similar
    session.lookup("Black Sea")    # (Result 1 / 2) ...
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any
from urllib.parse import quote

from formal_llm import authored
from formal_llm.agents.tools.articles import Article, TextArticles
from formal_llm.agents.tools.corpus_file import FORMAT, MOST_TITLE, build_corpus, normalise_title
from formal_llm.authored.files import check_plain, lines_of
from formal_llm.authored.places import user_cache
from formal_llm.authored.tables import AlternativeShape, Keys, problems
from formal_llm.errors import InputError
from formal_llm.planning.json_data import JSON

_TITLE_WORDS = """
    mr mrs ms messrs dr prof st mt ft gen col lt sgt capt cmdr adm maj rev hon pres gov sen rep fr e.g i.e cf vs viz no
    nos vol fig figs eq ch sec p pp ed eds trans c ca approx est b d r jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ENDING_WORDS = "etc inc ltd co corp jr sr bros al a.m p.m"
_STARTING_WORDS = """
    The A An It Its He She They His Her Their This These Those That There In On At By From After Before During When
    While Since Although However Many Most Some As For With Under Today Later Both Each Between Among Until
"""
#: Behind these a name or number follows.
_TITLES = frozenset(_TITLE_WORDS.split())
#: These may end a sentence as well: they do where a capital follows.
_ENDINGS = frozenset(_ENDING_WORDS.split())
#: Words that begin sentences and are hardly ever inside a name.
_STARTERS = frozenset(_STARTING_WORDS.split())
# Nothing is tried twice (``++``), nor from the middle of a run of points: a text of points alone takes linear time.
_END = re.compile(r"(?<![.!?…])(?P<end>[.!?…]++)(?P<close>[\"'”’»)\]]*+)(?=\s++[\"'“‘«(\[]*+[^\W_a-z])")
_WORD = re.compile(r"\S*\Z")
_NEXT = re.compile(r"\s+[\"'“‘«(\[]*(\w*)")
_REACH = 40


def sentences(text: str) -> list[str]:
    """The sentences of a text, in their order, without blanks around them. Takes time in proportion to its length."""
    found = []
    for line in lines_of(text):
        begin = 0
        for end in _END.finditer(line):
            if _is_sentence_end(line, end):
                found.append(line[begin : end.end()].strip())
                begin = end.end()
        found.append(line[begin:].strip())
    return [sentence for sentence in found if sentence]


def _is_sentence_end(line: str, end: re.Match[str]) -> bool:
    if end["end"] != "." or end["close"]:
        return True
    before = line[max(0, end.start() - _REACH) : end.start()]
    last = _WORD.search(before)
    word = (last[0] if last else "").lstrip("\"'“‘«([")
    following = _NEXT.match(line[end.end() : end.end() + _REACH])
    starter = following is not None and following[1] in _STARTERS
    if word.lower() in _ENDINGS:
        return True
    if word.lower() in _TITLES and not (word.isupper() and starter):
        return False
    initial = len(word) == 1 and word.isalpha() and word.isupper()
    if initial or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):  # J. and U.S.
        return starter
    return True


#: What a search shows: sentences of a page that was found, titles where none was.
SHOWN_SENTENCES, SIMILAR_TITLES = 5, 5
#: What counts of a query.
_MOST_WORDS, _MOST_TRIGRAMS, _CANDIDATES, _ECHO = 16, 60, 20, 200
#: Steps of SQLite's machine, in thousands, after which a search for similar titles is given up.
_MOST_WORK = 20_000
_STOP_WORDS = """
    a an and are as at by did do does for from how in is it of on or that the to was were what when where which who
"""
_STOP = frozenset(_STOP_WORDS.split())


class Corpus:
    """A corpus: articles by title, and titles that are similar.

    Pickled, it is its path.

    Args:
        path: a file that :func:`build_corpus` made.

    Raises:
        InputError: there is no such file, or it is no corpus.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._lock = threading.Lock()
        way_out = "make one: build_corpus(JsonArticles(path), out)"
        try:
            check_plain(self.path)
            uri = f"file:{quote(str(self.path))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            weakref.finalize(self, self._connection.close)
            found = dict(self._connection.execute("SELECT name, value FROM meta"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; {way_out}") from error
        except sqlite3.Error as error:
            missing = not self.path.exists()
            raise InputError(
                f"{path}: {'there is no such file' if missing else 'this is no corpus'}; {way_out}"
            ) from error
        if found.get("format") != FORMAT or "articles" not in found:
            raise InputError(f"{path}: this corpus is not whole, or of another version; {way_out}")
        self._articles = int(found["articles"])
        self.fingerprint = str(found["content"])

    @classmethod
    def shipped(cls) -> Corpus:
        """The small corpus that comes with the library: common knowledge in our own sentences.

        It is built in the user's cache at first use (``$XDG_CACHE_HOME/formal-llm``, else ``~/.cache/formal-llm``).

        Raises:
            InputError: the cache cannot be written.
        """
        return cls.of(authored.find("tasks", "questions") / "corpus.txt")

    @classmethod
    def of(cls, text: str | Path) -> Corpus:
        """The corpus of a file in our text form; see :mod:`formal_llm.agents.tools.articles`.

        Raises:
            NotationError: the file cannot be read.
            InputError: the cache cannot be written.
        """
        source = TextArticles(text)
        place = user_cache() / f"corpus-{hashlib.sha256(Path(text).read_bytes()).hexdigest()[:16]}.sqlite"
        try:
            return cls(place)
        except InputError:  # it was never built, or is damaged
            try:
                build_corpus(source, place)
            except InputError as error:
                raise InputError(f"{error}; name another folder for caches: XDG_CACHE_HOME") from error
            return cls(place)

    def __len__(self) -> int:
        return self._articles

    def __repr__(self) -> str:
        return f"<Corpus of {len(self):,} articles: {self.path.name}>"

    def __reduce__(self) -> tuple[type[Corpus], tuple[Path]]:
        return Corpus, (self.path,)

    def session(self) -> CorpusSession:
        """What one run searches with."""
        return CorpusSession(self)

    def article(self, title: str) -> Article | None:
        """The article of a title or another name of it; None where there is none.

        Letter case does not count, unless two titles differ in nothing else.
        """
        with self._lock:
            for _ in range(4):  # a redirect may lead to another, and back
                found = self._connection.execute(
                    "SELECT title, text FROM article WHERE key = ? ORDER BY title != ?, id LIMIT 1",
                    (normalise_title(title), title.encode(errors="replace").decode()),
                ).fetchone()
                if found is not None:
                    return Article(*found)
                row = self._connection.execute(
                    "SELECT target FROM redirect WHERE key = ?", (normalise_title(title),)
                ).fetchone()
                if row is None:
                    return None
                title = row[0]
        return None

    def titles(self, count: int = 1000, after: str = "") -> list[str]:
        """Titles in alphabetical order, after one."""
        asked = "SELECT title FROM article WHERE key > ? ORDER BY key LIMIT ?"
        with self._lock:
            return [row[0] for row in self._connection.execute(asked, (normalise_title(after), count))]

    def similar(self, query: str, count: int = SIMILAR_TITLES) -> list[str]:
        """The titles nearest to a query, best first.

        Two rankings are merged by their places (reciprocal rank fusion, Cormack et al. 2009): one by words in title and
        text, one by the trigrams of titles, which finds what is misspelt. Any text is a query.
        """
        plain = normalise_title(query)
        words = list(dict.fromkeys(re.findall(r"\w+", plain)))
        distinctive = [word for word in words if word not in _STOP] or words
        shape = plain[:_MOST_TRIGRAMS]
        trigrams = list(dict.fromkeys(shape[at : at + 3] for at in range(len(shape) - 2)))
        distinctive = distinctive[:_MOST_WORDS]
        # What has all the words comes first, and is found quickly; what has some of them may be half the corpus.
        by_words = (
            self._rank_titles("words", "bm25(words, 10.0, 1.0)", distinctive, " AND ") if len(distinctive) > 1 else []
        )
        if len(by_words) < _CANDIDATES:
            by_words += self._rank_titles("words", "bm25(words, 10.0, 1.0)", distinctive, " OR ")
        places: dict[str, float] = {}
        for ranked in (by_words, self._rank_titles("shapes", "bm25(shapes)", trigrams, " OR ")):
            for place, title in enumerate(dict.fromkeys(ranked)):
                places[title] = places.get(title, 0.0) + 1 / (60 + place)
        return sorted(places, key=lambda title: -places[title])[:count]

    def _rank_titles(self, table: str, rank: str, terms: list[str], joint: str) -> list[str]:
        """Titles that have all or some of the terms, best first; none where the search takes too much work."""
        quoted = joint.join(
            f'"{term}"' for term in (term.replace('"', '""').replace("\0", " ") for term in terms) if term
        )
        if not quoted:
            return []
        asked = f"SELECT title FROM {table} WHERE {table} MATCH ? ORDER BY {rank}, rowid LIMIT ?"  # noqa: S608  # ours
        left = _MOST_WORK

        def is_exhausted() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        with self._lock:
            self._connection.set_progress_handler(is_exhausted, 1_000)
            try:
                return [row[0] for row in self._connection.execute(asked, (quoted, _CANDIDATES))]
            except sqlite3.OperationalError:  # it took too much work
                return []
            finally:
                self._connection.set_progress_handler(None, 0)


@dataclass
class CorpusSession:
    """What one run has open: a page, and how far the lookup of a word on it came. Calls are one after the other.

    Attributes:
        corpus: where it searches.
        page: the article that was found last.
    """

    corpus: Corpus
    page: Article | None = None
    _keyword: str | None = None
    _found: list[str] = field(default_factory=list)
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def save(self) -> JSON:
        """The state as JSON data: the title of the page, and how far the lookup of a word came."""
        return {"page": self.page.title if self.page else None, "keyword": self._keyword, "next": self._next}

    def restore(self, state: JSON) -> None:
        """Take up what :meth:`save` returned.

        Raises:
            ValueError: it is damaged, or the corpus does not have that page any more.
        """
        shape = Keys(
            {"page": AlternativeShape((str, NoneType)), "keyword": AlternativeShape((str, NoneType)), "next": int},
            needed=("page", "keyword", "next"),
        )
        if problem := next((found.problem for found in problems(state, shape)), ""):
            raise ValueError(f"the state of a search is damaged: {problem}")
        saved: Any = state  # by the shape
        self.page = self.corpus.article(saved["page"]) if saved["page"] is not None else None
        if saved["page"] is not None and self.page is None:
            raise ValueError(f"the corpus has no page {saved['page']!r} any more")
        self._keyword = None
        if saved["keyword"] is not None:
            self.lookup(saved["keyword"])
            self._next = saved["next"]

    def search(self, query: str) -> str:
        """The first five sentences of the article with this title, or similar titles where there is none.

        A page that was open stays open where none is found.
        """
        found = self.corpus.article(query) if len(query) <= MOST_TITLE else None
        if found is None:
            asked = query if len(query) <= _ECHO else f"{query[:_ECHO]}…"
            return f"Could not find {asked}. Similar: {self.corpus.similar(query)}."
        with self._lock:
            self.page, self._keyword = found, None
        return " ".join(sentences(found.text)[:SHOWN_SENTENCES])

    def lookup(self, keyword: str) -> str:
        """The next sentence with this text on the page that was found last, ignoring letter case."""
        wanted = keyword.strip().casefold()
        with self._lock:
            if wanted != self._keyword:
                lines = sentences(self.page.text) if self.page is not None and wanted else []
                self._found = [line for line in lines if wanted in line.casefold()]
                self._keyword, self._next = wanted, 0
            if self._next >= len(self._found):
                return "No more results."
            self._next += 1
            return f"(Result {self._next} / {len(self._found)}) {self._found[self._next - 1]}"
