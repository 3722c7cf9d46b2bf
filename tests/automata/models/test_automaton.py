import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Automaton, Limits, Lookahead
from formal_llm.automata import EMPTY, Configuration, Stack
from formal_llm.automata.models.automaton import make_fingerprint

symbols = st.lists(st.sampled_from("XYZ") | st.text(max_size=3), max_size=6)


class TestStack:
    @given(symbols, symbols)
    def test_is_its_symbols_from_the_top_down(self, below, above):
        stack = Stack.of(*below).push(above)
        assert list(stack) == above + below
        assert len(stack) == stack.depth == len(above) + len(below)
        assert stack == Stack.of(*above, *below)
        assert hash(stack) == hash(Stack.of(*above, *below))
        assert eval(repr(stack)) == stack

    @given(symbols, symbols)
    def test_equal_exactly_when_the_symbols_are(self, one, other):
        assert (Stack.of(*one) == Stack.of(*other)) == (one == other)
        assert Stack.of(*one) != one
        assert len({Stack.of(*one), Stack.of(*other)}) == (1 if one == other else 2)

    def test_pushing_shares_the_tail_and_changes_nothing(self):
        below = Stack.of("X", "Y")
        above = below.push(["Z", "W"])
        assert above.rest.rest is below
        assert list(below) == ["X", "Y"]
        assert below.push([]) is below

    def test_empty_is_one_and_the_end(self):
        assert Stack.of() is EMPTY
        assert (EMPTY.top, EMPTY.rest, EMPTY.depth) == (None, EMPTY, 0)
        assert Stack.of("X").rest is EMPTY
        assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY
        assert copy.deepcopy(EMPTY) is EMPTY

    def test_deep_stacks_need_no_recursion(self):
        deep = Stack.of(*["X"] * 100_000)
        same = Stack.of("X", *["X"] * 99_999)
        assert deep is not same
        assert deep == same
        assert hash(deep) == hash(same)
        assert deep != Stack.of(*["X"] * 99_999, "Y")
        again = pickle.loads(pickle.dumps(deep))
        assert again == deep
        assert again.depth == 100_000
        assert copy.deepcopy(deep) == deep
        assert len(repr(deep)) > 300_000
        configuration = Configuration("q", deep)
        assert pickle.loads(pickle.dumps(configuration)) == configuration
        del same, again, deep, configuration  # freeing them must not recurse either

    def test_a_run_can_go_deep(self):
        pda = PDA.from_cfg(CFG.from_string("S -> a S b | ε"))
        now = pda.start()
        for _ in range(50_000):
            now = pda.step(now, pda.moves(now)[0])
        assert list(now.stack)[-2:] == ["b", "$"]


class TestProtocol:
    @pytest.mark.parametrize(
        "automaton",
        [PDA.from_cfg(CFG([("S", ("a",))])), Lookahead(CFG([("S", ("a",))]), Limits(default=1)).automaton],
    )
    def test_a_run_with_its_four_methods(self, automaton):
        assert isinstance(automaton, Automaton)
        now, word = automaton.start(), []
        while not automaton.accepting(now):
            (move,) = automaton.moves(now)
            word += [move.read] if move.read else []
            now = automaton.step(now, move)
        assert word == ["a"]
        assert automaton.start() == automaton.start()
        assert hash(automaton.start()) == hash(automaton.start())

    def test_other_things_are_none(self):
        assert not isinstance(CFG([("S", ("a",))]), Automaton)


class TestFingerprint:
    def test_sixteen_digits_that_stay_the_same_for_ever(self):
        assert make_fingerprint(["q", ("X",), None]) == make_fingerprint(["q", ("X",), None])
        assert len(make_fingerprint([])) == 16
        int(make_fingerprint(["x"]), 16)
        # Journals of walks keep it on disk: it must not depend on the process or the version.
        assert make_fingerprint(["q", ("X",), None]) == "14e266e6a363b83b"

    @given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
    def test_other_parts_other_name(self, one, other):
        assert (make_fingerprint(one) == make_fingerprint(other)) == (one == other)


def test_equal_stacks_share_what_lies_below_once_they_were_compared() -> None:
    one, other = Stack.of("a", "b", "c"), Stack.of("a", "b", "c")
    assert one.rest is not other.rest
    assert one == other
    assert one.rest is other.rest
    assert (tuple(one), tuple(other)) == (("a", "b", "c"), ("a", "b", "c"))
    assert Stack.of("a") == Stack.of("a")
    assert Stack.of() == Stack.of() == EMPTY
    assert Stack.of("a", "b") != Stack.of("a", "c")
