"""Behaviours as text: reading and writing, errors and warnings."""

import warnings

import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from formal_llm import Behaviour, BehaviourState
from formal_llm.automata.models.formula import Atom, next_, or_, until
from formal_llm.errors import AutomatonError
from tests.automata.formulas import made, trees
from tests.automata.messages import quiet
from tests.strategies import examples, texts

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
            reject()  # a contradiction
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
        chat = Behaviour.from_string("(define v1 (:states Chat-Bot User) (:behavior (always (next Chat-Bot User))))")
        assert chat.endless and str(chat.formula) == "(always (next Chat-Bot User))"


class TestWarnings:
    @pytest.mark.parametrize(
        ("text", "kind", "symbol"),
        [
            ("(define b (:states a\n  c) (:behavior a))", "unused", "c"),
            # Every single state that is an Act is also an Act then an Obs: so there is no Act.
            (
                "(define b (:states Act Obs) (:behavior (next (always (-> Act (next Act Obs))) Obs)))",
                "impossible",
                "Act",
            ),
            (
                '(define b (:states (a (:text "[A]")) (b (:text "[A]"))) (:behavior (or a (next b b))))',
                "same text",
                "b",
            ),
            ('(define b (:states (a (:text "[A]")) (b (:text "[A]"))) (:behavior (next a b)))', None, None),
            ("(define b (:states a) (:behavior (until a empty)))", "empty", ""),
        ],
    )
    def test_kinds(self, text, kind, symbol):
        """Their messages are in ``broken.txt``."""
        with quiet():
            behaviour = Behaviour.from_string(text)
        assert [(warning.kind, warning.symbol) for warning in behaviour.warnings] == ([(kind, symbol)] if kind else [])

    def test_states_that_any_and_not_take_are_used(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Behaviour.from_string("(define b (:states a c d) (:behavior (next a any (and any (not a)))))")


class TestLimitsOnNamesWithBlanks:
    TEXT = """(define day
      (:states
        ("Go, slowly" (:numbers (time 30min)))
        ("say \\"hi\\"" (:numbers (time 15min)))
        Rest)
      (:limits "%clock time 8:00-10:00" "%window \\"Go, slowly\\" 8:00-9:00" "%limit 1 Rest, \\"say \\\\\\"hi\\\\\\"\\""
               "%require 1 \\"Go, slowly\\"" "%gap 15min \\"Go, slowly\\" -> Rest")
      (:behavior (until (or "Go, slowly" "say \\"hi\\"") Rest)))"""

    def test_they_stand_in_quotes(self):
        behaviour = Behaviour.from_string(self.TEXT)
        assert behaviour.limits.at_most == {"Rest": 1, 'say "hi"': 1}
        assert behaviour.limits.at_least == {"Go, slowly": 1}
        assert behaviour.limits.times.windows[0].terminal == "Go, slowly"
        assert behaviour.limits.times.gaps[0].before == ("Go, slowly",)
        assert Behaviour.from_string(str(behaviour)) == behaviour
        assert behaviour.accepts(["Go, slowly", 'say "hi"', "Rest"])
        assert not behaviour.accepts(["Go, slowly", "Rest"])
