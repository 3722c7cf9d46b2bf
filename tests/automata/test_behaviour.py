"""Behaviours: the shipped files, reading and writing, errors and warnings, behaviours as automata."""

import warnings

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    PDA,
    AutomatonError,
    Behaviour,
    BehaviourState,
    GrammarWarning,
    Lookahead,
    NotationError,
    Planner,
    ResourceNotFound,
    authored,
    constraint,
)
from formal_llm.automata.models.formula import Atom, always, and_, next_, or_, until
from formal_llm.automata.models.formula_matching import matches
from tests.automata.test_formula import made, pointed, quiet, trees
from tests.oracles import all_words
from tests.strategies import examples, texts

# -- the shipped files -------------------------------------------------------------------------------------------------

ROUND = "Tht Act Act-Inp Obs"
LONG_ROUND = "thought action action-input observation"
PROPOSAL = "Final-Tht Prop-Ans Eval Ref"
#: Traces that each agent makes. That of ``pass`` with three pairs of actions and one summary is Figure 8 of the paper.
TRACES = {
    "react": ["Ques Final-Tht Ans", f"Ques {ROUND} Final-Tht Ans", f"Ques {ROUND} {ROUND} {ROUND} Final-Tht Ans"],
    "react-5": [
        "question final-thought answer",
        f"question {LONG_ROUND} {LONG_ROUND} final-thought answer",
        f"question {' '.join([LONG_ROUND] * 5)} final-thought answer",
    ],
    "rewoo": ["Ques Solver", "Ques Plan Act-Lbl Act Act-Inp Plan Act-Lbl Act Act-Inp Solver"],
    "reflexion": [
        "Ques Ans",
        f"Ques {ROUND} {PROPOSAL} Ans",
        f"Ques {ROUND} {ROUND} {PROPOSAL} {ROUND} {PROPOSAL} Ans",
    ],
    "reflexion-2-3": ["Ques Ans", f"Ques {' '.join([ROUND] * 3)} {PROPOSAL} {PROPOSAL} Ans"],
    "chain-of-thought": ["Ques Tht Ans"],
    "direct": ["Ques Ans"],
    "pass": [
        "Ques Plan Act Act-Inp Act Act-Inp Sum Final-Tht Ans",
        "Ques Final-Tht Ans",
        "Ques Plan Sum Plan Act Act-Inp Sum Final-Tht Ans",
    ],
    "pass-5": [
        "Ques Plan Act Act-Inp Act Act-Inp Sum Final-Tht Ans",
        f"Ques {'Plan Act Act-Inp Sum ' * 5}Final-Tht Ans",
    ],
    "chat-bot": ["user-problem final-resp", f"user-problem {LONG_ROUND} {LONG_ROUND} final-resp"],
}
#: What makes too many rounds of a bounded agent: one more of these.
TOO_MANY = {
    "react-5": f"question {' '.join([LONG_ROUND] * 6)} final-thought answer",
    "reflexion-2-3": f"Ques {' '.join([ROUND] * 4)} {PROPOSAL} Ans",
    "pass-5": f"Ques {'Plan Act Act-Inp Sum ' * 6}Final-Tht Ans",
}
ENVIRONMENT = {"rewoo": {"Solver"}, "reflexion": {"Obs", "Eval"}, "pass": {"Sum"}, "react": {"Obs"}, "direct": set()}


def changed(word, names):
    """The word with one state dropped, doubled, replaced or swapped with the next."""
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
        yield (*word[:at], word[at], *word[at:])
        yield from ((*word[:at], name, *word[at + 1 :]) for name in names)
        yield (*word[:at], *reversed(word[at : at + 2]), *word[at + 2 :])


class TestShipped:
    def test_all_are_known_here(self):
        assert set(authored.names("agents")) == set(TRACES)
        assert "agents" not in authored.names("grammars")

    @pytest.mark.parametrize("name", TRACES)
    def test_read_without_a_warning_and_printed(self, name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            behaviour = Behaviour.load(name)
        assert behaviour.name == name
        assert Behaviour.from_string(str(behaviour)) == behaviour
        assert behaviour.warnings == ()
        assert str(behaviour).startswith(f"(define {name}\n  (:states\n    (")

    @pytest.mark.parametrize("name", TRACES)
    def test_traces(self, name):
        behaviour = Behaviour.load(name)
        for trace in TRACES[name]:
            word = tuple(trace.split())
            assert behaviour.accepts(word) and behaviour.pda.accepts(word) and matches(behaviour.formula, word)
            refused = 0
            for other in changed(word, behaviour.states):
                legal = matches(behaviour.formula, other)
                assert behaviour.accepts(other) == legal, other
                refused += not legal
            assert refused > len(word)

    @pytest.mark.parametrize("name", TOO_MANY)
    def test_bounds(self, name):
        word = TOO_MANY[name].split()
        assert not Behaviour.load(name).accepts(word)
        unbounded = Behaviour.load(name.split("-")[0])
        renamed = {"question": "Ques", "answer": "Ans", "final-thought": "Final-Tht"}
        renamed |= dict(zip(LONG_ROUND.split(), ROUND.split(), strict=True))
        assert unbounded.accepts([renamed.get(state, state) for state in word])

    @pytest.mark.parametrize("name", ENVIRONMENT)
    def test_what_the_environment_says(self, name):
        states = Behaviour.load(name).states.values()
        assert {state.name for state in states if state.from_environment} == ENVIRONMENT[name]

    def test_by_path_and_by_name(self, tmp_path):
        path = tmp_path / "mine.agent"
        path.write_bytes(b"\xef\xbb\xbf(define mine (:states a)\r\n (:behavior a))")
        assert Behaviour.load(str(path)) == Behaviour.from_file(path) == Behaviour("mine", ["a"], Atom(name="a"))
        with pytest.raises(ResourceNotFound, match=r"no behaviour 'reakt'.*Did you mean 'react'"):
            Behaviour.load("reakt")
        with pytest.raises(NotationError, match="no such file"):
            Behaviour.from_file(tmp_path / "none.agent")


# -- behaviours as values ----------------------------------------------------------------------------------------------

REACT = Behaviour.load("react")


class TestBehaviour:
    def test_next_states(self):
        assert REACT.next_states() == ("Ques",)
        assert REACT.next_states(["Ques"]) == ("Tht", "Final-Tht")
        assert REACT.next_states(("Ques", "Tht", "Act")) == ("Act-Inp",)
        assert REACT.next_states(["Ques", "Final-Tht", "Ans"]) == ()
        assert REACT.next_states(["Tht"]) == REACT.next_states(["none"]) == ()

    @given(trees("abc"))
    @examples(80)
    def test_next_states_are_those_that_can_be_completed(self, tree):
        try:
            behaviour = Behaviour("b", "abc", made(tree))
        except AutomatonError:
            return
        # Of a prefix of one state, one more state and then at most as many more as the automaton has, less one.
        assume(len(behaviour.dfa.table) <= 4)
        words = {word for word in all_words("abc", 5) if matches(behaviour.formula, word)}
        for prefix in all_words("abc", 1):
            longer = [word for word in words if word[: len(prefix)] == prefix and len(word) > len(prefix)]
            assert set(behaviour.next_states(prefix)) == {word[len(prefix)] for word in longer}

    def test_automaton(self):
        assert REACT.pda.name == "react"
        assert len(REACT.pda.states) == 7
        assert REACT.pda.label("Act-Inp") == "[Action Input]"
        assert "after Ques or Obs" in REACT.pda.states
        assert tuple(REACT.terminals) == tuple(REACT.states)
        assert Lookahead(REACT.pda).shortest_word() == ("Ques", "Final-Tht", "Ans")
        assert Lookahead(REACT.pda).count(max_length=11) == 3
        plan = Planner(REACT.pda, "test:random=1").plan("x")
        assert REACT.accepts(plan.word)

    def test_picture(self):
        assert "Final-Tht" in REACT.to_mermaid()
        assert REACT.to_dot().startswith("digraph")

    def test_repr_hash_and_difference(self):
        assert repr(REACT).startswith("<Behaviour react: 7 states, (next Ques")
        assert hash(REACT) == hash(Behaviour.load("react"))
        assert Behaviour.load("direct") != REACT
        assert (REACT == 3) is False

    def test_with_a_grammar(self):
        cfg = CFG.from_string("%limit 2 Tht\nS -> Ques R\nR -> Tht Act Act-Inp Obs R | Final-Tht Ans | Ans")
        for both in (cfg & REACT, REACT & cfg):
            assert Lookahead(both).count() == 3
            assert both.accepts(["Ques", "Final-Tht", "Ans"]) and not both.accepts(["Ques", "Ans"])

    def test_with_a_behaviour_or_a_constraint(self):
        once = REACT & constraint("(until (and any (not Obs)) (next Obs (always (not Obs))))", REACT)
        assert isinstance(once, PDA)
        assert Lookahead(once).count() == 1
        assert [one.name for one in (REACT & REACT).factors] == ["react", "react"]
        assert (REACT & REACT).accepts(["Ques", "Final-Tht", "Ans"])
        with pytest.raises(TypeError):
            REACT & "react"

    @pytest.mark.parametrize(
        ("states", "formula", "problem"),
        [
            (["a", "a"], Atom(name="a"), "two states of b have the same name"),
            (["act", "obs"], next_("act", "osb"), r"unknown state: osb \(did you mean obs\?\)"),
            (["a", "b"], and_("a", "b"), "no sequence of states satisfies"),
            (["a", "b"], or_("a", always(next_("a", "b"))), r"no single state satisfies .*\(always \(next a b\)\)"),
        ],
    )
    def test_contradictions_in_code(self, states, formula, problem):
        with pytest.raises(AutomatonError, match=problem):
            Behaviour("b", states, formula)


# -- the notation ------------------------------------------------------------------------------------------------------

names = st.text(max_size=5).filter(lambda name: not set(name) & set("\0\r")) | st.sampled_from(
    ["any", "next", ":states", "a b", "#", ";", "(", '"', "define", "é漢"]
)


@st.composite
def behaviours(draw):
    pool = draw(st.lists(names, min_size=3, max_size=5, unique=True))
    flags = st.sampled_from([frozenset(), frozenset(["env-input"])])
    states = [BehaviourState(name, draw(texts.filter(lambda text: "\0" not in text)), draw(flags)) for name in pool]
    return draw(names), states, made(draw(trees("abc")), dict(zip("abc", pool, strict=False)))


class TestRoundTrip:
    @given(behaviours())
    @examples(150)
    def test_print_then_read(self, drawn):
        try:
            behaviour = Behaviour(*drawn)
        except AutomatonError:
            return
        with quiet():
            again = Behaviour.from_string(str(behaviour))
        assert again == behaviour
        assert str(again) == str(behaviour)
        assert list(again.states) == list(behaviour.states)

    @given(texts)
    @example('"\\\n')
    def test_any_text(self, text):
        assume("\0" not in text)
        behaviour = Behaviour("b", [BehaviourState("a", text)], Atom(name="a"))
        assert Behaviour.from_string(str(behaviour)) == behaviour

    def test_printed_form(self):
        long = next_("start", until(or_(*(next_(f"look-{n}", f"use-{n}") for n in range(8))), "end", 1, 3))
        states = [BehaviourState(name, f"[{name}]") for name in long.names]
        states[1] = BehaviourState("look-0", "", frozenset(["env-input"]))
        lines = str(Behaviour("many", states, long)).splitlines()
        assert lines[:4] == [
            "(define many",
            "  (:states",
            '    (start (:text "[start]"))',
            "    (look-0 (:flags :env-input))",
        ]
        assert lines[19:24] == [
            '    (end (:text "[end]")))',
            "  (:behavior",
            "    (next",
            "      start",
            "      (until_1_3",
        ]
        assert max(map(len, lines)) <= 100

    @pytest.mark.parametrize(
        "text",
        [
            '(define b (:states (a (:text "A")) (c (:flags :env-input))) (:behavior (next a c)))',
            '# 1\n(define b ; 2\n (:behaviour (next a c)) # 3\n (:states (a (:text "A"))\n(c (:flags :env-input))))\n',
            '(define "b" (:states ("a" (:text "A")) (c (:flags :env-input :env-input))) (:behavior (next "a" c)))',
        ],
    )
    def test_layouts(self, text):
        states = [BehaviourState("a", "A"), BehaviourState("c", "", frozenset(["env-input"]))]
        assert Behaviour.from_string(text) == Behaviour("b", states, next_("a", "c"))

    def test_the_formulas_of_2023_are_read_too(self):
        formula = "(and (always (-> any (or Act Obs Ans))) (until (next Act Obs) Ans))"
        behaviour = Behaviour.from_string(f"(define v1 (:states Act Obs Ans) (:behavior {formula}))")
        assert behaviour.accepts(["Act", "Obs", "Act", "Obs", "Ans"])


def refuse(text):
    with pytest.raises(NotationError) as caught:
        Behaviour.from_string(text)
    return caught.value


GOOD = '(:states (Tht (:text "[Thought]")) Act) (:behavior (next Tht Act))'


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "problem", "caret", "hint"),
        [
            ("(defin b)", "a behaviour is a definition", "(defin b)", "(define NAME"),
            ("react", "a behaviour is a definition", "react", None),
            (f"(define {GOOD})", "the definition has no name", "define", None),
            ("(define)", "the definition has no name", "define", None),
            (f"(define b {GOOD})\n(define c {GOOD})", "a second behaviour", "(define c", None),
            ("(define b (:states a))", ":behavior is missing", "(define b", None),
            ("(define b (:behavior a))", ":states is missing", "(define b", None),
            ("(define b (:states) (:behavior a))", "there are no states", "(:states)", None),
            (f"(define b {GOOD} (:behaviour Act))", "a second :behavior", ":behaviour", None),
            ("(define b (:state a) (:behavior a))", "unknown: :state (did you mean :states?)", ":state a", None),
            ("(define b a (:behavior a))", "unexpected here", "a (", None),
            ("(define b (:states a\n  b\n  a) (:behavior a))", "a second state a; the first is in line 1", "a)", None),
            ("(define b (:states ((a))) (:behavior a))", "a state begins with its name", "(a)", None),
            ('(define b (:states (:text "a")) (:behavior a))', ":text stands where a state should", ":text", None),
            ("(define b (:states :a) (:behavior :a))", ":a stands where a state should", ":a)", None),
            ("(define b (:states (a (:txt 1))) (:behavior a))", "unknown: :txt (did you mean :text?)", ":txt", None),
            ("(define b (:states (a (:text [A]))) (:behavior a))", "a text stands in quotes", "[A]", None),
            ("(define b (:states (a (:text))) (:behavior a))", "a text stands in quotes", ":text", None),
            ('(define b (:states (a (:text "x" "y"))) (:behavior a))', "and there is one", '"x"', None),
            (
                '(define b (:states (a (:text "x") (:text "y"))) (:behavior a))',
                "a second text for a",
                ':text "y"',
                None,
            ),
            (
                "(define b (:states (a (:flags :env-imput))) (:behavior a))",
                "unknown flag: :env-imput (did you mean :env-input?)",
                ":env-imput",
                None,
            ),
            ("(define b (:states (a (:flags (x)))) (:behavior a))", "unknown flag", "(x)", None),
            ("(define b (:states a) (:behavior))", "no formulas, where one is needed", "(:behavior)", "(next ...)"),
            ("(define b (:states a) (:behavior a a))", "2 formulas, where one is needed", "a))", "(next ...)"),
            (
                "(define b (:states Tht Act) (:behavior (next Thy Act)))",
                "unknown state: Thy (did you mean Tht?)",
                "Thy",
                None,
            ),
            ("(define b (:states a b) (:behavior (and a b)))", "no sequence of states satisfies", "(and a b)", None),
            ("(define b (:states a b) (:behavior (always (next a b))))", "no single state", "(always", None),
            ("(define b (:states a\n (:behavior a)", "this parenthesis is never closed", "(:behavior a)", None),
        ],
    )
    def test_place_and_advice(self, text, problem, caret, hint):
        error = refuse(text)
        assert problem in error.problem
        if "never closed" not in problem:
            assert pointed(error).startswith(caret)
        if hint:
            assert hint in (error.suggestion or "")

    def test_nothing(self):
        assert "there is no behaviour" in str(refuse("# only a comment"))

    def test_whole_message(self, tmp_path):
        path = tmp_path / "slip.agent"
        path.write_text('(define slip\n  (:states (Tht (:text "[Thought]")) Act)\n  (:behavior (nex Tht Act)))\n')
        with pytest.raises(NotationError) as caught:
            Behaviour.from_file(path)
        assert str(caught.value) == (
            f"{path}:3:15: unknown operator: nex\n"
            "  3 |   (:behavior (nex Tht Act)))\n"
            "    |               ^\n"
            "  did you mean next?"
        )


class TestWarnings:
    @pytest.mark.parametrize(
        ("text", "kind", "symbol", "message"),
        [
            (
                "(define b (:states a\n  c) (:behavior a))",
                "unused",
                "c",
                r"<string>:2:3: the state c is not used: no allowed sequence holds it",
            ),
            (
                # Every single state that is an Act is also an Act then an Obs: so there is no Act.
                "(define b (:states Act Obs) (:behavior (next (always (-> Act (next Act Obs))) Obs)))",
                "impossible",
                "Act",
                "<string>:1:20: the state Act can never come",
            ),
            (
                '(define b (:states (a (:text "[A]")) (b (:text "[A]"))) (:behavior (or a (next b b))))',
                "same text",
                "b",
                r"<string>:1:39: a and b can come at the same point and have the same text '\[A\]'",
            ),
            ("(define b (:states a) (:behavior (until a empty)))", "empty", "", "<string>:1:34: the empty sequence"),
        ],
    )
    def test_kinds(self, text, kind, symbol, message):
        with pytest.warns(GrammarWarning, match=message):
            behaviour = Behaviour.from_string(text)
        assert [(warning.kind, warning.symbol) for warning in behaviour.warnings] == [(kind, symbol)]

    def test_one_text_at_different_points_is_fine(self):
        text = '(define b (:states (a (:text "[A]")) (b (:text "[A]"))) (:behavior (next a b)))'
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Behaviour.from_string(text)

    def test_states_that_any_and_not_take_are_used(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Behaviour.from_string("(define b (:states a c d) (:behavior (next a any (and any (not a)))))")
