import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA
from formal_llm.automata import Configuration, Stack

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
