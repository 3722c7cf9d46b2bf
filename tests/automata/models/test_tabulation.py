from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Lookahead
from formal_llm.automata.models.tabulation import accepts_by_tabulation, some_run_accepts
from tests.oracles import all_words
from tests.strategies import automata, direct_automata, examples


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
