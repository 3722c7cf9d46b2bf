"""Stacks that can be worked off in several states: what the lookahead says of them, against the slow reference."""

import random

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Limits, Lookahead, constraint
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.models.automaton import Configuration, Stack
from formal_llm.automata.models.product import constrained
from tests.automata.lookahead.judging import judge
from tests.oracles import INF, Reference, language
from tests.strategies import LETTERS, examples, grammars

FORMULAS = [
    "(eventually a)",
    "(not (eventually b))",
    "(-> (eventually a) (eventually (next b (until any c))))",
    "(not (eventually (next a b)))",
    "(eventually (next c (until any a)))",
    "(until_0_2 any (next b (until any empty)))",
]


def make_exits(seed):
    """An automaton that pops most symbols in several states and accepts in the midst of stacks; a state, a stack."""
    pick = random.Random(seed)
    pushed = ["", "", "", "X", "Y", "XY", "YX", "XXY"]
    moves = [
        (pick.choice("pqr"), pick.choice("ab-"), pick.choice("XXY-"), pick.choice("pqr"), (*pick.choice(pushed),))
        for _ in range(pick.randint(6, 12))
    ]
    moves = [(at, read.strip("-") or None, top.strip("-") or None, end, push) for at, read, top, end, push in moves]
    accepting = pick.sample("pqr", pick.choice([0, 1, 1, 2]))
    pda = PDA(moves, start="p", accepting=accepting, stack="XY", alphabet="ab", check=False)
    return pda, pick.choice("pqr"), Stack.of(*pick.choices("XY", k=pick.randint(0, 4)))


#: Drawn by numbers, since small ones, which are tried most, have few exits.
many_exits = st.integers(0, 1 << 32).map(make_exits)


limits = st.builds(
    Limits,
    at_most=st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2),
    at_least=st.dictionaries(st.sampled_from("ab"), st.integers(1, 2), max_size=1),
)


class TestSeveralExits:
    @given(many_exits, st.lists(limits, min_size=1, max_size=2))
    @examples(120)
    def test_all_that_is_known_of_a_stack(self, source, limits):
        pda, state, stack = source
        for bounds in limits:
            lookahead, slow = Lookahead(pda, bounds), Reference(pda, bounds, "ab")
            now = lookahead.automaton.start()
            inner = Configuration(state, stack)
            now = now._replace(inner=inner) if bounds else inner
            judge(lookahead, now)
            detours = lookahead.detours(now)
            shortest = Reference(pda, Limits(), "ab").length(state, (*stack,))
            for name in "ab":
                using = slow.length_using(name, state, (*stack,))
                assert using == INF or shortest + detours[name] <= using

    @given(many_exits)
    @examples(60)
    def test_without_limits_bounds_are_exact(self, source):
        pda, state, stack = source
        lookahead, slow, now = Lookahead(pda), Reference(pda, Limits(), "ab"), Configuration(state, stack)
        assert lookahead.least_steps(now) == slow.moves(state, (*stack,))
        assert lookahead.least_length(now) == slow.length(state, (*stack,))

    def test_deep_stacks(self):
        """Which of the states below each symbol lead to an end is found once for each, not once for each run."""
        pops = [("p", "a", "X", "p"), ("p", "b", "X", "q"), ("q", "a", "X", "q"), ("q", "b", "Y", "r")]
        lookahead = Lookahead(PDA([*pops, ("p", "c", "Z", "r")], start="p", accepting="r", stack="XYZ"))
        for bottom, least in (("Y", 3001), ("Z", 3001), ("X", None)):
            now = Configuration("p", Stack.of(*"X" * 3000, bottom))
            assert lookahead.shortest(now) == least
            assert lookahead.completable(now).possible == (least is not None)


class TestManyStates:
    """A product of constraints, which may pop a symbol in very many states."""

    @given(grammars(), st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=3, unique=True))
    @examples(20)
    def test_products_are_decided_as_words_written_out(self, cfg, formulas):
        limits = Limits(default=2)
        pda = constrained(PDA.from_cfg(cfg), [constraint(formula, LETTERS) for formula in formulas])
        words = [word for word in language(cfg, 5) if pda.accepts(word) and all(word.count(a) < 3 for a in LETTERS)]
        lookahead = Lookahead(pda, limits)
        for cut in {word[:n] for word in words for n in range(len(word) + 1)}:
            assert ConfigurationSets(lookahead).is_viable(cut) is not False
        if words:
            assert lookahead.shortest() == min(map(len, words))
        assert lookahead.completable().value != "no" or not words
