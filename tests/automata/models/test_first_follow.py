"""FIRST and FOLLOW against the textbook's rules, applied one by one until nothing changes."""

from hypothesis import given

from formal_llm import CFG
from formal_llm.automata.models.first_follow import first_of, first_sets, follow_sets
from tests.oracles import language, rules
from tests.strategies import examples, grammars


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

    @given(grammars(selections=False))
    @examples(40)
    def test_words_begin_with_what_first_says(self, cfg):
        table, nullable, bits, first, _ = sets_of(cfg)
        for head, body in table:
            starts, vanishes = first_of(body, nullable, bits)
            words = language(CFG([("?", body), *table], "?"), 3)
            assert {word[0] for word in words if word} <= first.get(head, set())
            assert ((() in words), bool(starts)) == (vanishes, bool(starts))
            if any(words):
                assert starts
