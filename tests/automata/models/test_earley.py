"""Charts alone, without the stack that reads what is unambiguous."""

from unittest.mock import patch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG
from formal_llm.automata.languages.word_lists import words as cfg_words
from formal_llm.automata.models import earley
from formal_llm.automata.models.earley import ANY, append_column, collapse_to_stack, iterate_origins, make_ground_item
from tests.oracles import all_words, alphabet, language
from tests.strategies import examples, grammars


def read(cfg, word):
    """The columns of a chart along ``word``, and what is under way behind it; None where the word cannot go on."""
    columns, items = [], {make_ground_item(cfg.recognizer.initial_stack()): ~0}
    for terminal in word:
        items = append_column(columns, items, terminal).next.get(terminal)
        if items is None:
            return None
    return columns, items


def accepts(cfg, word):
    found = read(cfg, word)
    return found is not None and append_column(*found, None).accepted


class TestChart:
    @given(grammars())
    @examples(150)
    def test_accepts_the_words_of_the_grammar(self, cfg):
        assume(not cfg.recognizer.empty)
        words = language(cfg, 4)
        for word in all_words(alphabet(cfg)[:3], 4):
            assert accepts(cfg, word) == (word in words), word

    @given(grammars())
    @examples(100)
    def test_many_origins_at_once(self, cfg):
        assume(not cfg.recognizer.empty)
        with patch.object(earley, "_MANY", 1):
            words = language(cfg, 4)
            for word in all_words(alphabet(cfg)[:3], 4):
                assert accepts(cfg, word) == (word in words), word

    def test_many_origins_of_a_chart_that_is_taken_back(self):
        cfg = CFG.from_string("S -> S S | S S S | a | b")
        with patch.object(earley, "_MANY", 1):
            assert [*cfg_words(cfg, 4)] == [*all_words("ab", 4)][1:]

    @given(grammars())
    @examples(80)
    def test_every_beginning_of_a_word_is_under_way(self, cfg):
        assume(not cfg.recognizer.empty)
        for word in language(cfg, 4):
            for cut, terminal in enumerate(word):
                columns, items = read(cfg, word[:cut])
                assert terminal in append_column(columns, items, ANY).next

    def test_what_may_come_next(self):
        cfg = CFG.from_string("S -> a S b | c T | ε\nT -> d | T e")

        def following(word):
            return set(append_column(*read(cfg, word), ANY).next)

        assert following("") == {"a", "c"}
        assert following("a") == {"a", "b", "c"}
        assert following("aab") == {"b"}
        assert following("ac") == {"d"}
        assert following("acd") == {"e", "b"}
        assert read(cfg, "b") is None

    @given(grammars())
    @examples(80)
    def test_the_one_stack_that_is_left_reads_on_as_the_chart_does(self, cfg):
        assume(not cfg.recognizer.empty)
        assume(agree_on_stacks(cfg, 3))

    @pytest.mark.parametrize(
        "text",
        [
            # One item, begun at several places: where it is done, each of them goes on in its own way.
            "S -> a S d | X\nX -> A c\nA -> a A | a",
            "S -> a S | X S | b\nX -> A c\nA -> a A | a",
        ],
    )
    def test_one_stack_of_ambiguous_grammars(self, text):
        assert agree_on_stacks(CFG.from_string(text), 4)


def agree_on_stacks(cfg, up_to):
    """How many stacks were found that read on as the charts that they are of; all do."""
    letters, found = alphabet(cfg)[:3], 0
    for word in all_words(letters, up_to):
        under_way = read(cfg, word)
        stack = collapse_to_stack(*under_way) if under_way and word else None
        if stack is not None:
            found += 1
            for rest in all_words(letters, 3):
                assert stack_accepts(stack, rest) == accepts(cfg, word + rest), (word, rest)
    return found


def stack_accepts(stack, word):
    columns, items = [], {make_ground_item(stack): ~0}
    for terminal in word:
        items = append_column(columns, items, terminal).next.get(terminal, {})
    return append_column(columns, items, None).accepted


class TestOrigins:
    @given(st.sets(st.integers(0, 200)))
    def test_bits_are_positions(self, positions):
        assert list(iterate_origins(sum(1 << position for position in positions))) == sorted(positions)

    @given(st.integers(0, 10**6))
    def test_one_alone_is_written_as_its_complement(self, position):
        assert list(iterate_origins(~position)) == [position]
