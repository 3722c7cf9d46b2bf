"""Notations of classes that know nothing of them."""

import re
from dataclasses import dataclass

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart
from formal_llm.automata.models.written import Notation, Written, notation_of, read_text, register_notation
from formal_llm.errors import GrammarError, NotationError


@dataclass(frozen=True)
class Pair(Written):
    one: str
    other: str
    file: str | None = None


@dataclass(frozen=True)
class Twins(Pair):
    """Written as pairs are."""


class Unknown(Written):
    """Nobody has said how these are written."""


class PairError(NotationError):
    pass


def read_pair(text, file):
    one, other = text.split("+")
    return Pair(one, other, file)


PAIRS = Notation(read_pair, lambda pair: f"{pair.one}+{pair.other}", PairError)
register_notation(Pair, PAIRS)


class TestTable:
    def test_methods_come_from_the_table(self, tmp_path):
        assert Pair.from_string("a+b") == Pair("a", "b")
        assert Pair.from_string("a+b", file="here").file == "here"
        assert str(Pair("a", "b")) == "a+b"
        path = tmp_path / "some.pair"
        path.write_text("\ufeffa+é", encoding="utf-8")
        assert Pair.from_file(path) == Pair.from_file(str(path)) == Pair("a", "é", str(path))

    def test_an_unreadable_file_is_an_error_of_the_notation(self, tmp_path):
        with pytest.raises(PairError, match="no such file"):
            Pair.from_file(tmp_path / "none.pair")

    def test_derived_classes_are_written_alike(self):
        assert notation_of(Twins) is notation_of(Pair) is PAIRS
        assert str(Twins("a", "b")) == "a+b"

    @pytest.mark.parametrize(
        "ask", [lambda: Unknown.from_string("a"), lambda: Unknown.from_file("a"), lambda: str(Unknown())]
    )
    def test_a_class_that_is_not_in_the_table(self, ask):
        with pytest.raises(TypeError, match="Unknown has no notation"):
            ask()


#: One of each kind, as it is printed.
PRINTED = {
    CFG: "%start S\n%limit 1\n\nS -> a S | ε\n\na \"the a\" cost=2\n",
    PDA: "%start p\n%accept q\n\np, a, ε -> q, ε \"go\"\n",
    Flowchart: 'flowchart TB\n    A["Do it"]\n    B(["End"])\n    A --> B\n',
    Behaviour: '(define b\n  (:states\n    (a (:text "[A]"))\n    (c))\n  (:behavior\n    (until a c)))\n',
}  # fmt: skip


class TestKinds:
    @pytest.mark.parametrize("kind", PRINTED)
    def test_there_and_back(self, kind, tmp_path):
        value = kind.from_string(PRINTED[kind])
        assert type(value) is kind
        assert str(value) == PRINTED[kind]
        path = tmp_path / "rules"
        path.write_text(str(value), encoding="utf-8")
        assert kind.from_file(path) == value

    @pytest.mark.parametrize("kind", PRINTED)
    def test_errors_name_the_file(self, kind):
        with pytest.raises(NotationError) as caught:
            kind.from_string("(", file="some file")
        assert caught.value.file == "some file"
        assert str(caught.value).startswith("some file")


class TestReadText:
    def test_a_byte_order_mark_and_line_ends(self, tmp_path):
        path = tmp_path / "text"
        path.write_bytes(b"\xef\xbb\xbfS -> \xc3\xa9\r\n")
        assert read_text(path) == read_text(str(path)) == "S -> é\r\n"

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            (b"S -> a\xff", "this is not a text file in UTF-8 (byte 6 cannot be read)"),
            (b"S \0-> a", "this is not a text file (zero byte at 2)"),
        ],
    )
    def test_where_a_file_is_no_text(self, tmp_path, data, problem):
        path = tmp_path / "data"
        path.write_bytes(data)
        with pytest.raises(PairError, match=re.escape(problem)) as caught:
            read_text(path, PairError)
        assert caught.value.file == str(path)


class TestFiles:
    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(GrammarError, match="no such file") as caught:
            CFG.from_file(tmp_path / "missing.cfg")
        assert caught.value.file == str(tmp_path / "missing.cfg")
        with pytest.raises(GrammarError, match="cannot be read") as caught:
            CFG.from_file(tmp_path)
        assert caught.value.file == str(tmp_path)

    @pytest.mark.parametrize(
        "data",
        [
            b"\x80\x81",
            b"S -> a\xff",
            "S -> a".encode("utf-16"),
            "S -> a".encode("utf-32"),
            b"\x7fELF\x00\x01",
            b"S -> \x00",
        ],
    )
    def test_files_that_are_not_text(self, tmp_path, data):
        path = tmp_path / "odd.cfg"
        path.write_bytes(data)
        with pytest.raises(GrammarError, match="not a text file") as caught:
            CFG.from_file(path)
        assert caught.value.file == str(path)

    def test_utf16_without_mark_is_refused(self, tmp_path):
        path = tmp_path / "odd.cfg"
        path.write_bytes("S -> a".encode("utf-16-le"))
        with pytest.raises(GrammarError, match="zero byte at 1"):
            CFG.from_file(path)
