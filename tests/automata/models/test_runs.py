"""Whether some run accepts, against the table of what is done between pushing a symbol and popping it."""

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Lookahead
from formal_llm.automata.models.runs import some_run_accepts
from tests.strategies import automata, direct_automata, examples

names = st.sampled_from("pqr")
stacks = st.sampled_from("XYZ")
transitions = st.tuples(
    names, st.sampled_from(["a", None]), stacks | st.none(), names, st.lists(stacks, max_size=2).map(tuple)
)


@given(st.lists(transitions, min_size=1, max_size=6), st.lists(stacks, max_size=2), names)
@examples(400)
def test_the_same_as_the_lookahead_says(made, stack, final):
    pda = PDA(made, start=made[0][0], accepting=[final], stack=stack, check=False)
    assert some_run_accepts(pda, pda.transitions) == Lookahead(pda).completable().possible


@given(automata() | direct_automata())
@examples(60)
def test_of_automata_that_people_write_too(pda):
    bare = pda.without_limits
    assert some_run_accepts(bare, bare.transitions) == Lookahead(bare).completable().possible


def test_what_leaves_the_top_alone_is_followed_once_for_all_tops():
    many = [("p", "a", None, "p", (f"X{n % 40}",)) for n in range(40)] + [("p", "a", None, "q", ())]
    seen = []

    class Counted(PDA):
        def transitions_at(self, state, top):
            seen.append(top)
            return super().transitions_at(state, top)

    pda = Counted(many, start="p", accepting=["q"])
    assert some_run_accepts(pda, pda.transitions) and not seen
