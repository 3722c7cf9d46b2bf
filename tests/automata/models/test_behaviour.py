"""Behaviours: the shipped ones, and behaviours as automata."""

import warnings

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Limits, Lookahead, Planner, authored, constraint
from formal_llm.automata.models.formula import Atom, always, and_, next_, or_
from formal_llm.errors import AutomatonError, NotationError, ResourceNotFound
from tests.automata.formula_matching import matches
from tests.automata.formulas import made, trees
from tests.oracles import all_words, keeps
from tests.strategies import examples

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
    "react-ablated": ["Final-Thought", "Thought Observation Thought Observation Final-Thought"],
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
    "pass-no-summarizer": ["Ques Plan Act Act-Inp Act Act-Inp List-Results Final-Tht Ans", "Ques Final-Tht Ans"],
    "pass-5": [
        "Ques Plan Act Act-Inp Act Act-Inp Sum Final-Tht Ans",
        f"Ques {'Plan Act Act-Inp Sum ' * 5}Final-Tht Ans",
    ],
    "chat-bot-endless": ["Chat-Bot User", "Chat-Bot User Chat-Bot User Chat-Bot User"],
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


class TestEndless:
    @pytest.mark.parametrize(
        ("formula", "endless"),
        [
            ("(always (next a b))", True),
            ("(next a (always (next b c)))", True),
            ("(next (always (next a b)) c)", False),
            ("(until (next a b) empty)", False),
            ("(always (or a b))", False),
        ],
    )
    def test_what_never_ends_by_itself(self, formula, endless):
        with warnings.catch_warnings(action="ignore"):  # the empty sequence is allowed
            behaviour = Behaviour.from_string(f"(define b (:states a b c) (:behavior {formula}))")
            again = Behaviour.from_string(str(behaviour))
        assert behaviour.endless == endless and str(behaviour.formula) == formula and again == behaviour

    def test_it_is_a_sequence_again_and_again(self):
        behaviour = Behaviour.load("chat-bot-endless")
        assert behaviour.next_states() == ("Chat-Bot",) and behaviour.next_states(["Chat-Bot"]) == ("User",)
        assert not behaviour.accepts(["Chat-Bot"]) and behaviour.accepts(["Chat-Bot", "User"] * 40)


REACT = Behaviour.load("react")


class TestBehaviour:
    @given(trees("abc"), st.integers(0, 2), st.integers(0, 2))
    @examples(30)
    def test_next_states_under_limits_are_those_that_can_be_completed(self, tree, most, least):
        try:
            behaviour = Behaviour("b", "abc", made(tree), Limits({"a": most}, {"b": least}, default=2))
        except AutomatonError:
            reject()  # a contradiction
        words = {word for word in all_words("abc", 6) if keeps(word, behaviour.limits, "abc", {})}
        words = {word for word in words if matches(behaviour.formula, word)}
        for prefix in all_words("abc", 2):
            following = {word[len(prefix)] for word in words if word[: len(prefix)] == prefix and word != prefix}
            assert set(behaviour.next_states(prefix)) == following

    def test_next_states(self):
        assert REACT.next_states() == ("Ques",)
        assert REACT.next_states(["Ques"]) == ("Tht", "Final-Tht")
        assert REACT.next_states(("Ques", "Tht", "Act")) == ("Act-Inp",)
        assert REACT.next_states(["Ques", "Final-Tht", "Ans"]) == ()
        assert REACT.next_states(["Tht"]) == REACT.next_states(["none"]) == ()

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
