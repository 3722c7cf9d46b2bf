"""Lines of automata: families, names and texts."""

import pytest

from formal_llm import (
    PDA,
    Symbol,
)
from tests.automata.packing import everything


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

    def test_a_trip(self):
        """Fifteen days, walked through in order, as in Formal-LLM's travel example."""
        pda = PDA.from_string("%start q0\n%accept q15\nq{t}, day{t+1}, ε -> q{t+1}, ε for t in 0..14\n%limit 1")
        assert pda.accepts([f"day{t}" for t in range(1, 16)])
        assert len(pda.transitions) == 15
