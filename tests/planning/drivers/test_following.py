"""Following a draft: the moves that agree with it, as far as some do; against all words of small languages."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Walk
from formal_llm.errors import NoValidPlan
from formal_llm.planning.drivers.following import find_way_along, follow_way
from formal_llm.planning.reading.drafts import DraftStep, DraftSteps
from formal_llm.planning.walks.choices import ChoiceTable
from tests import oracles, strategies
from tests.planning.wandering import CHAIN, SEASONING


def draft_of(*names: str) -> DraftSteps:
    return DraftSteps(tuple(DraftStep(name, frozenset({name})) for name in names))


def test_a_legal_draft_is_followed_to_the_end() -> None:
    walk = Walk(CHAIN, "t")
    way = find_way_along(walk.table, walk.configuration, draft_of("a", "b", "c"))
    assert way is not None and way.whole and way.reach == 3 and way.at[0] == 0
    assert follow_way(walk, draft_of("a", "b", "c"), way) == 3 and walk.done and walk.word == ("a", "b", "c")


def test_another_one_is_followed_as_far_as_it_is_legal() -> None:
    walk = Walk(CHAIN, "t")
    draft = draft_of("a", "b", "x", "c")
    way = find_way_along(walk.table, walk.configuration, draft)
    assert way is not None and not way.whole and way.reach == 2
    assert find_way_along(walk.table, walk.configuration, draft, whole=True) is None
    assert follow_way(walk, draft, way) == 2 and walk.word == ("a", "b") and walk.question is not None
    rest = find_way_along(walk.table, walk.configuration, draft, 3)
    assert rest is not None and rest.whole


def test_where_a_walk_has_another_option_ruled_out_it_stops() -> None:
    walk = Walk(CHAIN, "t")
    walk.take(0)
    walk.rule_out(0)
    way = find_way_along(walk.table, walk.configuration, draft_of("a", "c"))
    assert way is not None and follow_way(walk, draft_of("a", "c"), way) == 0 and walk.word == ()


def test_symbols_that_derive_themselves_hide_no_word() -> None:
    cfg = CFG.from_string("S -> ε | S S | some(a, b) | A\nA -> S A | c")
    word = ("b", "a", "a", "c", "b", "a") * 2
    walk = Walk(cfg, "t")
    way = find_way_along(walk.table, walk.configuration, draft_of(*word))
    assert way is not None and way.whole
    assert tuple(move.read for move in way.moves if move.read is not None) == word


def test_sets_are_taken_in_any_order_and_whole() -> None:
    walk = Walk(SEASONING, "t")
    way = find_way_along(walk.table, walk.configuration, draft_of("cook", "pepper", "salt", "serve"))
    assert way is not None and way.whole
    assert [move.read for move in way.moves if move.read is not None] == ["cook", "salt", "pepper", "serve"]
    half = find_way_along(walk.table, walk.configuration, draft_of("cook", "pepper", "x", "serve"))
    assert half is not None and half.reach == 1


@strategies.examples(60)
@given(strategies.limited_grammars(), st.lists(st.sampled_from(strategies.LETTERS), max_size=4))
def test_a_draft_is_wholly_legal_just_where_it_is_a_word(cfg: CFG, names: list[str]) -> None:
    try:
        table = Walk(ChoiceTable.of(cfg), "t").table
    except NoValidPlan:
        assume(False)
        return
    word = tuple(names)
    way = find_way_along(table, table.automaton.start(), draft_of(*word), whole=True)
    is_word = word in oracles.language(cfg, len(word)) and oracles.keeps(word, cfg.limits, cfg.terminals, cfg.symbols)
    if is_word:
        assert way is not None and tuple(move.read for move in way.moves if move.read is not None) == word
    elif way is not None:  # a set in another order
        read = tuple(move.read for move in way.moves if move.read is not None)
        assert sorted(read) == sorted(word) and cfg.accepts(read)
