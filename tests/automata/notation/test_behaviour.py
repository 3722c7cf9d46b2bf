"""Behaviours as text: reading and writing, errors and warnings."""

import warnings

import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from formal_llm import Behaviour, BehaviourState
from formal_llm.automata.models.formula import Atom, next_, or_, until
from formal_llm.errors import AutomatonError, GrammarWarning, NotationError
from tests.automata.formulas import made, trees
from tests.automata.messages import from_caret, quiet
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
            ("(define b (:states a b) (:behavior (always (and a b))))", "no single state", "(always", None),
            ("(define b (:states a b) (:behavior (always (next a (and a b)))))", "no single state", "(always", None),
            ("(define b (:states a\n (:behavior a)", "this parenthesis is never closed", "(:states a", None),
        ],
    )
    def test_place_and_advice(self, text, problem, caret, hint):
        error = refuse(text)
        assert problem in error.problem
        assert from_caret(error).startswith(caret)
        if hint:
            assert hint in (error.suggestion or "")

    def test_nothing(self):
        assert "there is no behaviour" in str(refuse("# only a comment"))


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
