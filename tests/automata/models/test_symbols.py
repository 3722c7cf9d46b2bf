"""Symbols, productions, selections, and the two fixed points over productions."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Symbol, selection
from formal_llm.automata.models.symbols import (
    expand_selections,
    first_sets,
    follow_sets,
    quote_text,
    selection_members,
    unquote_text,
)
from tests import oracles
from tests.oracles import language, rules
from tests.strategies import examples, grammars, names, texts


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


def sets_of(cfg):
    table = [(head, body) for head, bodies in rules(cfg).items() for body in bodies]
    bits = {name: 1 << number for number, name in enumerate(cfg.terminals)}
    nullable = {head for head in rules(cfg) if () in language(CFG(table, head), 0)}
    first = first_sets(table, bits, nullable)
    follow = follow_sets(table, bits, nullable, first)
    names = {bit: name for name, bit in bits.items()}

    def spelled(sets):
        return {symbol: {names[bit] for bit in names if found & bit} for symbol, found in sets.items()}

    return table, nullable, first, spelled(first), spelled(follow)


def by_the_book(table, nullable, terminals):
    """(FIRST, FOLLOW) by the rules of the textbook, over sets."""
    heads = {head for head, _ in table}
    first = {name: {name} for name in terminals} | {head: set() for head in heads}
    follow = {head: set() for head in heads}

    def begins(body):
        found = set()
        for name in body:
            found |= first[name]
            if name not in nullable:
                return found, False
        return found, True

    for _ in range(len(table) * (len(terminals) + 1) + 1):
        for head, body in table:
            first[head] |= begins(body)[0]
            for place, name in enumerate(body):
                if name in heads:
                    after, vanishes = begins(body[place + 1 :])
                    follow[name] |= after | (follow[head] if vanishes else set())
    return first, follow


class TestFirstAndFollow:
    @given(grammars(selections=False))
    @examples(80)
    def test_as_the_book_says(self, cfg):
        table, nullable, _, first, follow = sets_of(cfg)
        right_first, right_follow = by_the_book(table, nullable, cfg.terminals)
        assert {name: found for name, found in first.items() if found} == {n: f for n, f in right_first.items() if f}
        assert {name: found for name, found in follow.items() if found} == {n: f for n, f in right_follow.items() if f}
