"""Rules from files: endings, places in texts, messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, authored
from formal_llm.automata.notation.files import ENDINGS, read_rules, read_rules_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import GrammarError, NotationError
from tests.automata.messages import from_caret

TEXTS = {
    ".cfg": (CFG, "S -> a"),
    ".pda": (PDA, "%accept q\np, a, ε -> q, ε"),
    ".mmd": (Flowchart, "flowchart TD\nA --> B"),
    ".mermaid": (Flowchart, "flowchart TD\nA --> B"),
    ".agent": (Behaviour, "(define b (:states a) (:behavior a))"),
    ".rules": (Behaviour, "steps: a\nfirst a"),
}


class TestReadRules:
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_each_ending_is_read_as_what_it_is(self, tmp_path, ending):
        kind, text = TEXTS[ending]
        path = tmp_path / f"some rules{ending}"
        path.write_text(text, encoding="utf-8")
        assert type(read_rules(path)) is kind
        assert read_rules(str(path)) == read_rules(path) == kind.from_string(text, file=str(path))

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_text_that_is_not_saved_is_read_as_its_file_would_be(self, tmp_path, ending):
        kind, text = TEXTS[ending]
        path = tmp_path / f"rules{ending}"
        assert type(read_rules_text(text, path)) is kind
        path.write_text(text, encoding="utf-8")
        assert read_rules_text(text, path) == read_rules(path)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_errors_name_the_file(self, tmp_path, ending):
        path = tmp_path / f"broken{ending}"
        with pytest.raises(NotationError, match="no such file"):
            read_rules(path)
        path.write_text("(", encoding="utf-8")
        with pytest.raises(NotationError) as caught:
            read_rules(path)
        assert caught.value.file == str(path)

    def test_an_ending_that_names_no_notation(self, tmp_path):
        with pytest.raises(NotationError, match=r"\.cgf names no notation of rules; there are: \.cfg, \.pda"):
            read_rules(tmp_path / "rules.cgf")

    @pytest.mark.parametrize("name", ["rules", "rules.txt"])
    def test_a_file_of_another_name_is_a_grammar(self, tmp_path, name):
        path = tmp_path / name
        path.write_text("S -> a b", encoding="utf-8")
        assert read_rules(path) == CFG([("S", ("a", "b"))])
        path.write_text("S -> a b)", encoding="utf-8")
        with pytest.raises(GrammarError):
            read_rules(path)

    @pytest.mark.parametrize("kind", ["grammars", "agents"])
    def test_every_shipped_file_is_read_back_from_its_print(self, kind):
        for name in authored.names(kind):
            rules = read_rules(authored.find(kind, name, ENDINGS))
            assert type(rules).from_string(str(rules)) == rules


lines = st.lists(st.text("ab é\t漢", max_size=4), min_size=1, max_size=5)


class TestOf:
    def test_a_zero_byte_shows_that_it_is_no_text(self):
        with pytest.raises(NotationError, match=r"this is not a text \(zero byte at 2\)") as caught:
            SourceText.from_text("ab\0", "some file", NotationError)
        assert (caught.value.file, caught.value.line) == ("some file", None)
        assert type(caught.value) is NotationError

    @pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
    def test_every_line_end_is_one(self, end):
        with pytest.raises(NotationError) as caught:
            Flowchart.from_string(f"\ufeffflowchart TD{end}A --> B{end}\tB ->> C{end}")
        assert (caught.value.line, caught.value.column) == (3, 4)


class TestFail:
    @given(lines, st.data())
    def test_the_caret_stands_under_the_place(self, rows, data):
        source = SourceText("\n".join(rows), "some file")
        offset = data.draw(st.integers(0, len(source.text)))
        place = source.place_of(offset)
        with pytest.raises(GrammarError) as caught:
            source.fail_at("this is wrong", place)
        error = caught.value
        assert (error.file, error.line, error.column, error.source_line) == ("some file", *place, rows[place.line - 1])
        assert from_caret(error) == rows[place.line - 1][place.column - 1 :].replace("\t", " ")

    def test_without_a_place_nothing_is_shown(self):
        with pytest.raises(GrammarError) as caught:
            SourceText("a b", "some file").fail_at("it is all wrong", None)
        assert str(caught.value) == "some file: it is all wrong"
