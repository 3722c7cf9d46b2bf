"""Pushdown automata: their transitions and stacks, what they accept, what is wrong with them."""

import copy
import pickle

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Symbol, Transition
from formal_llm.automata import Configuration, Stack
from formal_llm.automata.models.pda import ACCEPT, LOOP, START
from formal_llm.automata.models.transition import find_problem
from formal_llm.errors import AutomatonError
from tests.oracles import all_words, runs
from tests.strategies import automata, direct_automata, examples, limited_automata


class TestErrors:
    @pytest.mark.parametrize(
        ("transitions", "more", "problem"),
        [
            ([("p", "a", None, "p")], {"accepting": []}, "no final state"),
            (
                [("p", "a", None, "pause")],
                {"accepting": ["pasue"]},
                "'pasue' is in no transition; did you mean 'pause'",
            ),
            (
                [("p", "a", None, "p"), ("q", "b", None, "p")],
                {},
                r"'q' cannot be reached from 'p': \(q, b, ε -> p, ε\)",
            ),
            ([("start", "a", None, "p")], {"start": "strat"}, "'start' cannot be reached from 'strat'"),
            ([("p", "a", "Tray", "p", ("Trai",))], {}, "'Tray' is popped but never pushed: .*did you mean 'Trai'"),
            ([("p", "a", "X", "p")], {"stack": ("Y",)}, "'X' is popped but never pushed"),
            ([("p", "a")], {}, "a transition is"),
            ([("p", "a", None, "p", (), "text", 1)], {}, "a transition is"),
        ],
    )
    def test_contradictions_are_named(self, transitions, more, problem):
        with pytest.raises(AutomatonError, match=problem) as caught:
            PDA(transitions, **{"start": "p", "accepting": ["p"], **more})
        assert isinstance(caught.value, ValueError)


transitions = st.lists(
    st.builds(
        Transition,
        st.sampled_from("pqrs"),
        st.none() | st.just("a"),
        st.none() | st.sampled_from("XY"),
        st.sampled_from("pqrs"),
        st.lists(st.sampled_from("XY"), max_size=2).map(tuple),
    ),
    max_size=6,
)


class TestFindProblem:
    @given(transitions, st.sets(st.sampled_from("pqrs")), st.sets(st.sampled_from("XY")))
    @examples(300)
    def test_what_is_wrong_is_wrong_and_nothing_else_is(self, made, accepting, below):
        graph = networkx.DiGraph([(t.state, t.target) for t in made])
        graph.add_node("p")
        reached = networkx.descendants(graph, "p") | {"p"}
        pushed = {*below, *(name for t in made for name in t.push)}
        problem = find_problem(made, "p", accepting, pushed)
        unknown = accepting - set(graph)
        if not accepting:
            assert "no final state" in problem.message
        elif unknown:
            assert problem.name in unknown
            assert "is in no transition" in problem.message
        elif not {t.state for t in made} <= reached:
            assert problem.name == problem.transition.state not in reached
            assert f"cannot be reached from 'p': {problem.transition}" in problem.message
        elif not {t.pop for t in made} - {None} <= pushed:
            assert problem.name == problem.transition.pop not in pushed
            assert f"is popped but never pushed: {problem.transition}" in problem.message
        else:
            assert problem is None


def to_pyformlang(pda):
    """The grammar of the same automaton, made to pop one symbol in every transition and to accept by empty stack."""
    from pyformlang.pda import PDA as Other

    other = Other()
    tops = ["bottom", *sorted({*pda.start_stack, *(n for t in pda.transitions for n in t.push)})]
    other.set_start_state("begin")
    other.set_start_stack_symbol("bottom")
    other.add_transition("begin", "epsilon", "bottom", pda.start_state, [*pda.start_stack, "bottom"])
    for t in pda.transitions:
        for top in (t.pop,) if t.pop is not None else tops:
            push = [*t.push] if t.pop is not None else [*t.push, top]
            other.add_transition(t.state, t.read or "epsilon", top, t.target, push)
    for state in [*pda.accepting_states, "drain"]:
        for top in tops:
            other.add_transition(state, "epsilon", top, "drain", [])
    return other.to_cfg()


A_THEN_B = [("p", "a", None, "p", ("A",)), ("p", None, None, "q"), ("q", "b", "A", "q"), ("q", None, "$", "f")]


class TestFromCFG:
    CFG = CFG.from_string('S "start" -> a S b "wrap it" | some(a, c) | ε')
    PDA = PDA.from_cfg(CFG)

    def test_transitions_are_those_of_the_textbook(self):
        grammar = [
            ("S", ("a", "S", "b")),
            ("S", ("some(a, c)",)),
            ("S", ()),
            ("some(a, c)", ("a", "any(c)")),
            ("some(a, c)", ("some(c)",)),
            ("any(c)", ("c",)),
            ("any(c)", ()),
            ("some(c)", ("c",)),
        ]
        assert set(self.PDA.transitions) == {
            Transition(START, None, "$", LOOP, ("S", "$")),
            *(Transition(LOOP, None, head, LOOP, body) for head, body in grammar),
            *(Transition(LOOP, name, name, LOOP) for name in "abc"),
            Transition(LOOP, None, "$", ACCEPT),
        }
        assert len(self.PDA.transitions) == len(grammar) + 5

    def test_the_bottom_is_no_symbol_of_the_grammar(self):
        pda = PDA.from_cfg(CFG([("$", ("$$", "a"))]))
        assert pda.start_stack == ("$$$",)
        assert pda.accepts(["$$", "a"])

    def test_is_made_once(self):
        assert PDA.from_cfg(self.CFG) is self.PDA

    def test_classes(self):
        pda = PDA.from_cfg(CFG.from_string("S -> T S | ε\nT -> a | b"))
        now = pda.step(pda.start(), pda.moves(pda.start())[0])
        assert not pda.at_class(now)
        assert pda.at_class(pda.step(now, pda.moves(now)[0]))


class TestAccepts:
    @given(automata(letters=("a", "b")))
    @examples(150)
    def test_random_automata_agree_with_a_search(self, pda):
        for word in all_words("ab", 4):
            verdict = runs(pda, word, max_seen=500)
            assert verdict is None or pda.accepts(word) == verdict, word

    @given(automata(letters=("a", "b"), states=2, size=5))
    @examples(40)
    def test_random_automata_agree_with_pyformlang(self, pda):
        other = to_pyformlang(pda)
        for word in all_words("ab", 3):
            assert pda.accepts(word) == other.contains(list(word)), word

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
            assert stacked.accepts(word) == pda.accepts(word)

    @given(automata() | direct_automata())
    @examples(300)
    def test_whether_some_run_accepts_is_as_the_lookahead_says(self, pda):
        bare = pda.without_limits
        assert bare.has_accepting_run == Lookahead(bare).completable().possible

    def test_every_symbol_of_the_start_stack_is_worked_off(self):
        pda = PDA([("p", n, n, "p") for n in "abc"] + [("p", "d", None, "f")], start="p", accepting=["f"], stack="abc")
        assert [word for word in all_words("abcd", 4) if pda.accepts(word)] == [
            ("d",),
            ("a", "d"),
            ("a", "b", "d"),
            ("a", "b", "c", "d"),
        ]

    def test_an_empty_stack_stops_what_pops_only(self):
        pda = PDA([("p", "a", "X", "p"), ("p", "b", None, "p")], start="p", accepting=["p"], stack=("X",))
        assert pda.accepts("b" * 5)
        assert pda.accepts("bab")
        assert not pda.accepts("aa")

    def test_no_transitions_at_all(self):
        pda = PDA([], start="p", accepting=["p"])
        assert pda.accepts([])
        assert not pda.accepts(["a"])
        assert pda.moves(pda.start()) == ()

    def test_endless_pushing_ends(self):
        pda = PDA([("p", None, None, "p", ("X",)), ("p", "a", "X", "q")], start="p", accepting=["q"])
        assert pda.accepts("a")
        assert not pda.accepts("aa")
        assert not pda.accepts("")


class TestLimits:
    @given(limited_automata())
    def test_only_the_limits_change(self, source):
        pda, bounds = source
        pda.accepts(())  # what it works out, the copy may take over
        limited = pda.with_limits(bounds)
        assert (limited.limits, limited.without_limits) == (bounds, pda)
        assert (limited == pda) == (not bounds)
        assert limited.with_limits(Limits()) == pda
        assert limited.with_limits(bounds) is limited
        same = PDA(
            pda.transitions, start=pda.start_state, accepting=pda.accepting_states, stack=pda.start_stack,
            symbols=pda.symbols, limits=bounds,
        )  # fmt: skip
        assert limited == same
        assert hash(limited) == hash(same)
        assert limited.fingerprint == same.fingerprint

    def test_more_terminals_can_be_limited(self):
        pda = PDA([("p", "a", None, "p")], start="p", accepting=["p"])
        more = pda.with_limits(Limits(at_least={"b": 1}), ["b", "a", "c"])
        assert [*more.terminals] == ["a", "b", "c"]
        assert not more.accepts("a")
        assert more.without_limits.accepts("a")
        assert not more.without_limits.accepts("b")


class TestValue:
    def test_tuples_and_transitions_are_the_same(self):
        pda = PDA([*A_THEN_B, Transition(*A_THEN_B[0])], start="p", accepting=["f"], stack=("$",))
        assert len(pda.transitions) == 4
        assert pda.transitions[0] == Transition("p", "a", None, "p", ("A",))
        assert pda.transitions[2].push == ()

    def test_empty_strings_are_epsilon(self):
        pda = PDA([("p", "", "", "q"), ("q", "a", None, "q", [], "say a")], start="p", accepting=["q"])
        assert pda.transitions[0].parts() == ("p", None, None, "q", ())
        assert pda.transitions[1].text == "say a"

    def test_parts_in_order_of_appearance(self):
        pda = PDA(A_THEN_B, start="p", accepting=["f"], stack=("$",), symbols={"a": Symbol("the a")})
        assert list(pda.states) == ["p", "q", "f"]
        assert list(pda.terminals) == ["a", "b"]
        assert list(pda.stack_symbols) == ["$", "A"]
        assert pda.uses_stack
        assert not PDA([("p", "a", None, "p")], start="p", accepting=["p"]).uses_stack
        assert (pda.label("a"), pda.label("cut_it")) == ("the a", "cut it")
        assert repr(pda) == "<PDA: 3 states, 2 terminals, 2 stack symbols, 4 transitions>"


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
