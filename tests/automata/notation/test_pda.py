"""Automata as text."""

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, SumLimit, Symbol, Transition
from formal_llm.automata.models.product import product
from formal_llm.errors import GrammarWarning
from tests.automata.messages import quiet
from tests.automata.packing import PACKING, everything
from tests.strategies import amounts, examples, texts


class TestReading:
    def test_all_of_it(self):
        pda = PDA.from_string(PACKING)
        assert list(map(str, pda.transitions)) == [
            "(room, ε, ε -> box, ε)", "(room, ε, ε -> done, ε)", "(box, open, ε -> box, lid)",
            "(box, pack, floor -> box, floor)", "(box, pack, lid -> box, lid)", "(box, close, lid -> box, ε)",
            "(box, ε, floor -> done, ε)",
        ]  # fmt: skip
        assert (pda.start_state, pda.accepting_states, pda.start_stack) == ("room", {"done"}, ("floor",))
        assert pda.limits == Limits({"pack": 2}, {"pack": 1}, sums=(SumLimit("kg", 12.5),))
        assert pda.symbols["open"] == Symbol("Open a box", "a large one")
        assert pda.symbols["pack"].numbers == {"kg": 5.5}
        assert [(t.text, t.question, t.decision) for t in pda.transitions] == [
            ("yes", "Do we travel?", True), ("no", "Do we travel?", True), *[("", "What now?", False)] * 4,
            ("carry it away", "Finished?", False),
        ]  # fmt: skip

    def test_the_first_state_is_the_start(self):
        assert PDA.from_string("%accept f\np, a, ε -> f, ε").start_state == "p"

    def test_any_stack_symbol(self):
        pda = PDA.from_string("%accept f\n%stack Z Y\np, a, * -> p, X *\np, b, * -> p, * *\np, c, * -> f, ε")
        assert {(t.read, t.pop, t.push) for t in pda.transitions} == {
            *(("a", s, ("X", s)) for s in "ZYX"), *(("b", s, (s, s)) for s in "ZYX"), *(("c", s, ()) for s in "ZYX"),
        }  # fmt: skip

    def test_names_in_quotes(self):
        pda = PDA.from_string("%accept 'the end'\n'a b', 'ε', ε -> 'the end', '*' 'it\\'s'\n'ε' \"epsilon\"")
        assert pda.transitions[0].parts() == ("a b", "ε", None, "the end", ("*", "it's"))
        assert pda.label("ε") == "epsilon"

    def test_braces_in_texts_are_for_the_task(self):
        pda = PDA.from_string('%accept f\np, a{t}, ε -> f, ε "Pay {sum} on day {t+1}" for t in 1..2')
        assert [t.text for t in pda.transitions] == ["Pay {sum} on day 2", "Pay {sum} on day 3"]

    def test_a_state_without_a_way_on_is_warned_of(self):
        with pytest.warns(GrammarWarning, match="no transition leaves the state q11, .*; did you mean 'q1'"):
            PDA.from_string("%accept q1\np, a, ε -> q11, ε\np, b, ε -> q1, ε")


NAMES = st.one_of(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=4).filter(
        lambda name: unicodedata.is_normalized("NFC", name)
    ),
    st.sampled_from(
        ["ε", "%empty", "*", "for", "in", "ask", "decide", "->", "q{t}", "a=1", "%start", "'", "\\", "#", "\n"]
    ),
)


@st.composite
def written_automata(draw):
    """Random automata with all that the notation can say; every state is reached, and something is accepted."""
    states = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    letters = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    stack = draw(st.lists(NAMES, max_size=2, unique=True))
    asked = st.one_of(st.just(("", False)), st.tuples(texts.filter(bool), st.booleans()))

    def transition(state, target):
        question, decision = draw(asked)
        return Transition(
            state, draw(st.none() | st.sampled_from(letters)), draw(st.sampled_from([None, *stack])), target,
            tuple(draw(st.lists(st.sampled_from(stack), max_size=2))) if stack else (), draw(texts),
            question=question, decision=decision,
        )  # fmt: skip

    made = [transition(one, other) for one, other in pairwise(states)]
    made += [transition(states[0], states[0])]
    made += [
        transition(draw(st.sampled_from(states)), draw(st.sampled_from(states))) for _ in range(draw(st.integers(0, 4)))
    ]
    used = list(dict.fromkeys(t.read for t in made if t.read is not None))
    symbols = {
        name: Symbol(
            draw(texts), draw(texts), draw(st.dictionaries(st.sampled_from(["cost", "kg"]), amounts, max_size=2))
        )
        for name in used
    }
    limits = Limits(
        draw(st.dictionaries(st.sampled_from(used), st.none() | st.integers(0, 3), max_size=2)) if used else {},
        default=draw(st.none() | st.integers(1, 3)),
        sums=(SumLimit("kg", draw(amounts)),) if any("kg" in s.numbers for s in symbols.values()) else (),
    )
    return PDA(made, start=states[0], accepting=states, stack=stack, symbols=symbols, limits=limits, name=draw(texts),
               order=draw(st.sampled_from(["prefix", "forward"])))  # fmt: skip


class TestWriting:
    @given(written_automata())
    @examples(300)
    def test_reading_what_was_written(self, pda):
        again = PDA.from_string(str(pda))
        assert everything(again) == everything(pda)
        assert str(again) == str(pda)

    def test_automata_that_were_not_written_by_hand(self):
        pda = PDA.from_cfg(CFG.from_string('S "s" -> a S b | some(a, c) | ε'))
        again = PDA.from_string(str(pda))
        assert [t.parts() for t in again.transitions] == [t.parts() for t in pda.transitions]
        both = product(pda, PDA([(1, n, None, 1) for n in "abc"], start=1, accepting=[1]))
        with quiet():
            assert len(PDA.from_string(str(both)).transitions) == len(both.transitions)


class TestFamilies:
    @pytest.mark.parametrize(
        ("line", "written_out"),
        [
            ("q{t}, a, D{t} -> q{t-1}, ε for t in 1..2", ["q1, a, D1 -> q0, ε", "q2, a, D2 -> q1, ε"]),
            ("q, {a}, ε -> q, {a}{a} for a in x, y", ["q, x, ε -> q, xx", "q, y, ε -> q, yy"]),
            (
                'q{t}, {m}, ε -> q{2*t+1}, ε "{m} {t}" for t in 0..1 for m in x y',
                [
                    'q0, x, ε -> q1, ε "x 0"',
                    'q0, y, ε -> q1, ε "y 0"',
                    'q1, x, ε -> q3, ε "x 1"',
                    'q1, y, ε -> q3, ε "y 1"',
                ],
            ),
            ("q, a{t}, ε -> q, ε for t in -1..1, 7", [f"q, a{t}, ε -> q, ε" for t in (-1, 0, 1, 7)]),
            ("q, a{ 3 - (t - 1) }{-t}, ε -> q, ε for t in 2", ["q, a2-2, ε -> q, ε"]),
            ('q, for, ε -> q, in\nfor "For"', ["q, 'for', ε -> q, in", "'for' \"For\""]),
        ],
    )
    def test_by_hand(self, line, written_out):
        frame = "%start s\n%accept f\n%stack D2 D1\ns, ε, ε -> q{t}, ε for t in 0..3\ns, ε, ε -> q, ε\n"
        frame += "q{t}, ε, ε -> f, ε for t in 0..3\nq, ε, ε -> f, ε\n"
        assert everything(PDA.from_string(frame + line)) == everything(PDA.from_string(frame + "\n".join(written_out)))

    def test_directives_and_labels_have_families_too(self):
        text = '%accept f{t} for t in 1..2\np, a{t}, ε -> f{t}, ε for t in 1..2\na{t} "Day {t}" min={t} for t in 1..2'
        pda = PDA.from_string(text)
        assert pda.accepting_states == {"f1", "f2"}
        assert pda.symbols["a2"] == Symbol("Day 2", "", {"min": 2})


def read(line: str, names: str = "") -> list[str]:
    """The terminals of the transitions that a line stands for."""
    with quiet():
        return [t.read for t in PDA.from_string(f"%accept p\np, {line}, ε -> p, ε {names}").transitions]


class TestCounting:
    @given(st.integers(-3, 3), st.integers(0, 4), st.integers(-3, 3), st.integers(-3, 3))
    def test_braces_compute_as_python_does(self, low, size, factor, summand):
        made = read(f"q{{{factor}*t - ({summand} - t)}}", f"for t in {low}..{low + size}")
        numbers = dict.fromkeys(factor * t - (summand - t) for t in range(low, low + size + 1))
        assert made == [f"q{number}" for number in numbers]

    def test_several_clauses_are_every_pair(self):
        assert read("{a}{n}", "for a in x, y for n in 1..3") == [f"{a}{n}" for a in "xy" for n in (1, 2, 3)]

    @given(st.integers(-50, 50), st.integers(1, 50))
    def test_division_rounds_down_and_the_rest_is_what_is_left(self, number, divisor):
        made = read("{a/b} {a//b} {a%b}".replace(" ", "_"), f"for a in {number} for b in {divisor}")
        assert made == [f"{number // divisor}_{number // divisor}_{number % divisor}"]

    def test_ranges(self):
        assert read("{t}", "for t in 0..10 by 5, 12") == ["0", "5", "10", "12"]
        assert len(read("{t}", "for t in 1..100 for u in 1..10")) == 100


def test_a_long_automaton_is_read_fast() -> None:
    begin = time.process_time()
    assert len(PDA.from_string("%accept q5000\nq{t}, a{t}, ε -> q{t+1}, ε for t in 0..4999").transitions) == 5_000
    assert time.process_time() - begin < 2


def test_a_name_in_two_unicode_forms_is_one_name() -> None:
    pda = PDA.from_string(
        "%accept q\np, caf\u00e9, ε -> q, ε\nq, 'cafe\u0301', ε -> q, ε\ncafe\u0301 cost=1\n%limit 2 caf\u00e9"
    )
    assert list(pda.terminals) == ["caf\u00e9"]
    assert pda.limits.at_most == {"caf\u00e9": 2}
