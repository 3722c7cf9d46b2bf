"""Search and lookup, with the published semantics."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools import corpus as corpus_module
from formal_llm.agents.tools.corpus import Corpus, sentences
from formal_llm.errors import InputError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return Corpus.shipped()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "a.txt"
    file.write_text(
        "# Tea = Cha\nTea is a drink. Mr. Li made tea. It is hot. It is old. It has caffeine. "
        "A sixth has TEA in it.\n\n"
        "# Polish\nTo polish is to rub.\n\n# POLISH\nAn acronym.\n\n# Loop = Round\nText.\n\n# Coffee\nAnother drink.\n"
    )
    return Corpus.of(file)


def test_search_gives_five_sentences(small: Corpus) -> None:
    session = small.session()
    assert session.search("tea") == "Tea is a drink. Mr. Li made tea. It is hot. It is old. It has caffeine."
    assert session.search(" CHA ") == session.search("Tea")
    assert session.search("Loop") == "Text."


def test_letter_case_tells_titles_apart_where_nothing_else_does(small: Corpus) -> None:
    assert small.session().search("POLISH") == "An acronym."
    assert small.session().search("polish") == "To polish is to rub."


def test_lookup_goes_on_and_ends(small: Corpus) -> None:
    session = small.session()
    assert session.lookup("tea") == "No more results."
    session.search("Tea")
    assert session.lookup("Tea") == "(Result 1 / 3) Tea is a drink."
    assert session.lookup("tea") == "(Result 2 / 3) Mr. Li made tea."
    assert session.lookup("tea ") == "(Result 3 / 3) A sixth has TEA in it."
    assert session.lookup("tea") == session.lookup("tea") == "No more results."
    assert session.lookup("old") == "(Result 1 / 1) It is old."
    assert session.lookup("tea") == "(Result 1 / 3) Tea is a drink."
    session.search("Tea")
    assert session.lookup("tea") == "(Result 1 / 3) Tea is a drink."
    assert session.lookup("") == "No more results."


def test_a_search_that_finds_nothing_leaves_the_page_open(small: Corpus) -> None:
    session = small.session()
    session.search("Tea")
    assert session.search("Teaa").startswith("Could not find Teaa. Similar: ['Tea'")
    assert session.lookup("hot") == "(Result 1 / 1) It is hot."


def test_runs_do_not_share_what_they_have_open(corpus: Corpus) -> None:
    one, other = corpus.session(), corpus.session()
    one.search("Danube")
    other.search("Rhine")
    assert "Black Forest" in one.lookup("rises") and "Alps" in other.lookup("rises")
    assert other.lookup("nothing of this") == "No more results." and one.page != other.page


def test_a_session_and_a_corpus_can_be_pickled(corpus: Corpus) -> None:
    session = corpus.session()
    session.search("Danube")
    session.lookup("river")
    again = pickle.loads(pickle.dumps(session))
    assert again.lookup("river") == session.lookup("river")
    assert again.lookup("river").startswith(("(Result 3", "No more"))


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("Danub", "Danube"),
        ("Shakespear", "William Shakespeare"),
        ("Romeo and Juliette", "Romeo and Juliet"),
        ("Gemany", "Germany"),
        ("river Danube", "Danube"),
        ("the author of Hamlet", "Hamlet"),
        ("Everst", "Mount Everest"),
        ("tower in Paris", "Eiffel Tower"),
        ("Mozrat", "Wolfgang Amadeus Mozart"),
        ("red planet", "Mars"),
    ],
)
def test_similar_titles(corpus: Corpus, query: str, title: str) -> None:
    assert title in corpus.similar(query)
    assert corpus.session().search(query) == f"Could not find {query}. Similar: {corpus.similar(query)}."


HOSTILE = [
    "",
    " ",
    '"',
    '""',
    "'",
    "a AND",
    "NOT",
    "NEAR(a b",
    "*",
    "^a",
    "title:x",
    "a OR b)",
    "-",
    "%",
    "_",
    "\0",
    "\ud800",
    "🦄",
    "Danube🦄",
    "x" * 100_000,
    "danube " * 20_000,
    '"' * 100_000,
    "ﷺ" * 1000,
    "{}",
    "a\nb",
    "'; DROP TABLE article; --",
    "日本",
    "ab",
]


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: ascii(query[:20]))
def test_hostile_queries_are_queries(corpus: Corpus, query: str) -> None:
    session = corpus.session()
    said = session.search(query)
    assert said.startswith("Could not find ") and len(said) < 3_000
    assert session.lookup(query) == "No more results."
    session.search("Danube")
    assert session.lookup(query).startswith(("No more results.", "(Result 1 /"))


@given(st.text(max_size=40))
def test_any_query(corpus: Corpus, query: str) -> None:
    assert len(corpus.similar(query)) <= 5
    assert corpus.session().search(query)


def test_a_search_that_takes_too_much_work_is_given_up(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a corpus of millions, words that are everywhere would take minutes."""
    assert len(corpus.similar("it is")) == 5
    monkeypatch.setattr(corpus_module, "_MOST_WORK", 0)
    assert corpus.session().search("it is") == "Could not find it is. Similar: []."
    monkeypatch.undo()
    assert len(corpus.similar("it is")) == 5


def test_many_threads(corpus: Corpus) -> None:
    wrong: list[str] = []

    def run(title: str) -> None:
        session = corpus.session()
        right = all(session.search(title).startswith(title) and title in corpus.similar(f"{title}x") for _ in range(30))
        wrong.extend([] if right else [title])

    threads = [threading.Thread(target=run, args=(title,)) for title in ("Paris", "Hamlet", "Iceland", "Helium")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_shipped_corpus(corpus: Corpus) -> None:
    assert len(corpus) >= 100
    titles = corpus.titles()
    assert len(titles) == len(corpus) and corpus.titles(2, after=titles[0]) == titles[1:3]
    for title in titles:
        article = corpus.article(title)
        assert article is not None and article.title == title
        assert len(corpus.session().search(title)) > 100


def test_those_who_build_it_at_once_do_not_disturb_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    together = threading.Barrier(4)
    said: list[str] = []

    def build() -> None:
        together.wait()
        said.append(Corpus.shipped().session().search("Danube"))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4 and len(set(said)) == 1
    assert [path.suffix for path in (tmp_path / "formal-llm").iterdir()] == [".sqlite"]


def test_a_damaged_cache_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = Corpus.shipped().path
    place.write_bytes(b"damaged")
    assert len(Corpus.shipped()) >= 100


def test_what_is_no_corpus(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "none", "no such file"),
        (tmp_path, "folder"),
        (Path(__file__), "this is no corpus"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            Corpus(path)
        assert "build_corpus" in str(caught.value)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="XDG_CACHE_HOME"):
        Corpus.shipped()


@pytest.mark.parametrize(
    "parts",
    [
        ["One.", "Two."],
        ["Dr. Smith met Mr. Jones in St. Louis.", "They talked."],
        ["J. R. R. Tolkien wrote it in the U.S. in 1950.", "It was long."],
        ["He lived in the U.S.", "The army came."],
        ["The U.S. Army came."],
        ["Fruits, e.g. Apples, and i.e. Pears, cost $3.50 vs. 4.", "No more."],
        ["King Jr. was there.", "He spoke."],
        ["They sold pens, ink, etc.", "Nobody bought."],
        ["It is 3.5 m high.", "It is No. 5 of all."],
        ["Is it?", "Yes!", 'He said "No."', "Then he left..."],
        ["It needs vitamin C.", "It is found in lemons."],
        ["See fig. 3 on p. 12.", "Go on."],
        ["A line without a point", "Another line."],
        ["Élan vital is a term.", "Über is a word."],
        ["It ended in 1945.", "1946 was better."],
        ["He worked for NATO.", "Brussels was his town."],
    ],
)
def test_sentences(parts: list[str]) -> None:
    joined = " ".join(parts) if parts[0].endswith((".", "?", "!")) else "\n".join(parts)
    assert sentences(joined) == parts


@given(st.text('ab AB.!?\n"()1', max_size=80))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_long_texts_take_little_work() -> None:
    for text in ("." * 200_000, "A." * 100_000, "(" * 100_000 + ".", ". " * 100_000, "Mr. " * 50_000):
        assert "".join("".join(sentences(text)).split()) == "".join(text.split())
