"""Symbols, productions, selections."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import Symbol, selection
from formal_llm.automata.models.symbols import (
    expand_selections,
    quote_text,
    selection_members,
    unquote_text,
)
from tests import oracles
from tests.strategies import examples, names, texts


class TestSymbol:
    @given(texts, texts, st.dictionaries(st.sampled_from(["cost", "kg"]), st.integers(0, 3)))
    def test_equal_ones_have_equal_hashes(self, label, description, numbers):
        one = Symbol(label, description, numbers)
        other = Symbol(label, description, dict(reversed(numbers.items())))
        assert one == other
        assert hash(one) == hash(other)
        assert one != Symbol(label + "x", description, numbers)


class TestQuote:
    @given(texts | st.text())
    @examples(200)
    def test_there_and_back_on_one_line(self, text):
        literal = quote_text(text)
        assert unquote_text(literal) == text
        assert literal[0] == literal[-1] == '"'
        assert not set(literal) & set("\n\r")
        # Between the quotes each quote has an odd number of backslashes before it.
        inside = literal[1:-1]
        assert '"' not in inside.replace("\\\\", "").replace('\\"', "")

    def test_other_escapes_stand_for_themselves(self):
        assert unquote_text(r'"\t\q\\n"') == "\tq\\n"


def words_of(productions, symbol):
    """The words of a symbol, one for each derivation; the productions have no cycle."""
    bodies = [p.body for p in productions if p.head == symbol]
    if not bodies:
        yield (symbol,)
    for body in bodies:
        found = [()]
        for name in body:
            found = [word + more for word in found for more in words_of(productions, name)]
        yield from found


class TestSelection:
    @given(st.lists(names.filter(lambda name: ", " not in name), min_size=1, max_size=5, unique=True))
    @examples(60)
    def test_each_subset_in_order_by_one_derivation(self, terminals):
        assume(all(selection_members(name) is None for name in terminals))
        symbol = selection(*terminals)
        assert selection_members(symbol) == tuple(terminals)
        made = expand_selections([symbol])
        assert len(set(made)) == len(made)
        derived = [*words_of(made, symbol)]
        assert sorted(derived) == sorted(oracles.spelled_out(symbol))

    def test_several_share_what_they_have_in_common(self):
        made = expand_selections([selection("a", "c"), selection("b", "c"), selection("a", "c")])
        assert len(set(made)) == len(made)
        assert [p.head for p in made].count("any(c)") == 2

    @pytest.mark.parametrize("name", ["a", "some", "some(a", "sum(a)", "S", ")", ""])
    def test_other_symbols_have_no_members(self, name):
        assert selection_members(name) is None
