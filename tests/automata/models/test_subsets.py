from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA
from formal_llm.automata.models import subsets, tabulation
from formal_llm.automata.models.subsets import SubsetConstruction
from tests.oracles import all_words
from tests.strategies import examples

states = st.integers(0, 3)
steps = st.tuples(states, st.sampled_from(["a", "b", None]), st.none(), states)
finite = st.tuples(st.lists(steps, max_size=10), states, st.sets(states))


def automaton(made):
    transitions, start, accepting = made
    return PDA(transitions, start=start, accepting=accepting, check=False)


@given(finite)
@examples(150)
def test_random_automata_agree_with_their_tabulation(made):
    pda = automaton(made)
    found = SubsetConstruction(pda.transitions, pda.start_state, pda.accepting_states)
    for word in all_words("abc", 4):
        assert found.accepts(word) == pda.accepts(word) == tabulation.accepts_by_tabulation(pda, word), word


def test_what_was_read_is_read_again_without_a_step(monkeypatch):
    pda = automaton(([(0, "a", None, 0), (0, "a", None, 1), (1, "b", None, 0)], 0, [1]))
    assert pda.accepts("aab" * 50 + "a")
    monkeypatch.setattr(SubsetConstruction, "states_after", None)
    assert pda.accepts("aab" * 60 + "a")
    assert not pda.accepts("aab" * 60)


def test_sets_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(subsets, "_KEPT", 3)
    steps = [(0, "a", None, 0), (0, "b", None, 0), (0, "a", None, 1), (1, "a", None, 2), (1, "b", None, 2)]
    pda = automaton((steps, 0, [2]))
    for word in all_words("ab", 6):
        assert pda.accepts(word) == (len(word) > 1 and word[-2] == "a")
    assert len(pda._subsets._sets) <= 5
