import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Lookahead
from formal_llm.automata.models.pda import LOOP
from formal_llm.automata.models.tabulation import Tabulation, accepts_by_tabulation, some_run_accepts
from tests.oracles import all_words
from tests.strategies import automata, direct_automata, examples


def along(pda, word):
    return Tabulation(pda, lambda name, at: at + 1 if at < len(word) and word[at] == name else None)


def anywhere(pda):
    return Tabulation(pda, lambda name, at: at)


def bounded(pda, state, symbol, depth=7):
    """(states in which ``symbol`` was gone, whether a final state was entered before that) in runs of few moves."""
    gone, accepted = set(), False
    layer = {(state, (symbol,))}
    for _ in range(depth):
        following = set()
        for at, stack in layer:
            if not stack:
                gone.add(at)
                continue
            accepted = accepted or at in pda.accepting_states
            for t in pda.transitions:
                if t.state == at and t.pop in {None, stack[0]}:
                    following.add((t.target, (*t.push, *(stack if t.pop is None else stack[1:]))))
        layer = set(itertools.islice(following, 400))
    return gone, accepted


class TestExits:
    def test_along_a_word_an_exit_is_where_the_symbol_may_end(self):
        pda = PDA.from_cfg(CFG.from_string("S -> a S | a | ε"))
        assert set(along(pda, "aab").find_exits(LOOP, "S")) == {(LOOP, 0), (LOOP, 1), (LOOP, 2)}
        assert set(along(pda, "aab").find_exits(LOOP, "S", 2)) == {(LOOP, 2)}

    @pytest.mark.filterwarnings("ignore:.*can become")
    def test_left_recursion_and_unit_cycles_end(self):
        pda = PDA.from_cfg(CFG.from_string("S -> S a | T\nT -> S | b"))
        assert set(along(pda, "baa").find_exits(LOOP, "S")) == {(LOOP, 1), (LOOP, 2), (LOOP, 3)}

    def test_what_never_ends_has_no_exit(self):
        pda = PDA.from_cfg(CFG([("S", ("a", "S")), ("S", ("T",)), ("T", ("S", "S"))]))
        assert anywhere(pda).find_exits(LOOP, "S") == {}
        assert not anywhere(pda).may_accept(LOOP, "S")

    @given(automata())
    @examples(80)
    def test_nothing_that_short_runs_do_is_missing(self, pda):
        table = anywhere(pda)
        for state in pda.states:
            for symbol in pda.stack_symbols:
                gone, accepted = bounded(pda, state, symbol)
                assert gone <= {target for target, _ in table.find_exits(state, symbol)}
                assert table.may_accept(state, symbol) or not accepted

    def test_exits_in_several_states(self):
        pda = PDA(
            [("p", "a", "X", "q"), ("p", "b", "X", "r"), ("r", None, "X", "p")], start="p", accepting=["q"], stack="XX"
        )
        table = anywhere(pda)
        assert {state for state, _ in table.find_exits("p", "X")} == {"q", "r"}
        assert table.has_open_calls
        assert not table.may_accept("p", "X")
        assert table.may_accept("q", "X")


class TestAccepts:
    @given(automata(letters=("a", "b")))
    @examples(60)
    def test_a_final_state_below_a_longer_stack_counts(self, pda):
        # Accepting by final state: what is left on the stack does not matter.
        stacked = PDA(
            [*pda.transitions, (pda.start_state, None, None, pda.start_state, ("W",))],
            start=pda.start_state,
            accepting=pda.accepting_states,
            stack=(*pda.start_stack, "W"),
        )
        for word in all_words("ab", 3):
            assert accepts_by_tabulation(stacked, word) == accepts_by_tabulation(pda, word)

    def test_every_symbol_of_the_start_stack_is_worked_off(self):
        pda = PDA([("p", n, n, "p") for n in "abc"] + [("p", "d", None, "f")], start="p", accepting=["f"], stack="abc")
        assert [word for word in all_words("abcd", 4) if accepts_by_tabulation(pda, word)] == [
            ("d",),
            ("a", "d"),
            ("a", "b", "d"),
            ("a", "b", "c", "d"),
        ]


names = st.sampled_from("pqr")
stacks = st.sampled_from("XYZ")
transitions = st.tuples(
    names, st.sampled_from(["a", None]), stacks | st.none(), names, st.lists(stacks, max_size=2).map(tuple)
)


@given(st.lists(transitions, min_size=1, max_size=6), st.lists(stacks, max_size=2), names)
@examples(400)
def test_the_same_as_the_lookahead_says(made, stack, final):
    pda = PDA(made, start=made[0][0], accepting=[final], stack=stack, check=False)
    assert some_run_accepts(pda) == Lookahead(pda).completable().possible


@given(automata() | direct_automata())
@examples(60)
def test_of_automata_that_people_write_too(pda):
    bare = pda.without_limits
    assert some_run_accepts(bare) == Lookahead(bare).completable().possible
