"""Lines of automata: families, names and texts."""

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm import PDA, Symbol
from formal_llm.automata.notation import pda_lines
from formal_llm.automata.notation.pda_lines import (
    Time,
    compute_expression,
    parse_literal,
    parse_range,
    quoted_name,
    quoted_text,
    statements,
    unquoted,
)
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError
from tests.automata.packing import everything
from tests.strategies import examples, texts


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


def lines(text):
    return [*statements(SourceText(text, None, error=NotationError))]


class TestTokens:
    def test_kinds_and_places(self):
        source = SourceText('%limit 2 a\n\n  p, *,ε→\'q r\', x <= "a \\" b" # c\n', None)
        first, second = statements(source)
        assert [(t.kind, t.text) for t in first.tokens] == [("directive", "%limit"), ("name", "2"), ("name", "a")]
        assert [(t.kind, t.text) for t in second.tokens] == [
            ("name", "p"), ("comma", ","), ("any", "*"), ("comma", ","), ("name", "ε"), ("arrow", "→"), ("name", "q r"),
            ("comma", ","), ("name", "x"), ("compare", "<="), ("string", '"a \\" b"'),
        ]  # fmt: skip
        assert unquoted(second.tokens[-1]) == 'a " b'
        rows = source.text.split("\n")
        for token in (*first.tokens, *second.tokens):
            written = f"'{token.text}'" if token.quoted else token.text
            assert rows[token.place.line - 1][token.place.column - 1 :].startswith(written)
        assert second.end.place == Place(3, rows[2].index(" # c") + 1)

    def test_epsilon_in_quotes_is_a_name(self):
        (line,) = lines("ε %empty 'ε' for 'for'")
        assert [token.is_empty for token in line.tokens] == [True, True, False, False, False]
        assert [token.is_word("for") for token in line.tokens] == [False, False, False, True, False]


class TestQuoting:
    @given(st.text(min_size=1))
    @example("for")
    @example("%empty")
    @example("q{t}")
    @example("it's \"\\")
    @examples(200)
    def test_names_there_and_back(self, name):
        (line,) = lines(f"p, {quoted_name(name)}, x")
        assert [token.text for token in line.tokens] == ["p", ",", name, ",", "x"]
        assert not line.tokens[2].is_empty
        assert not line.tokens[2].is_word("for", "ask", "decide")

    @given(st.text() | texts)
    @examples(200)
    def test_texts_there_and_back(self, text):
        (line,) = lines(f"p {quoted_text(text)} x")
        assert [token.kind for token in line.tokens] == ["name", "string", "name"]
        assert unquoted(line.tokens[1]) == text

    @pytest.mark.parametrize("name", ["a", "q1", "a=1", "a.b", "é漢", "ask1"])
    def test_plain_names_stay_bare(self, name):
        assert quoted_name(name) == name


class TestCounting:
    @given(st.integers(-3, 3), st.integers(0, 4), st.integers(-3, 3), st.integers(-3, 3))
    def test_braces_compute_as_python_does(self, low, size, factor, summand):
        text = f"q{{{factor}*t - ({summand} - t)}} for t in {low}..{low + size}"
        assert [line.tokens[0].text for line in lines(text)] == [
            f"q{factor * t - (summand - t)}" for t in range(low, low + size + 1)
        ]

    def test_several_clauses_are_every_pair(self):
        made = lines("{a}{n} for a in x, y for n in 1..3")
        assert [line.tokens[0].text for line in made] == [f"{a}{n}" for a in "xy" for n in (1, 2, 3)]

    def test_as_many_lines_as_are_allowed(self):
        assert sum(1 for _ in statements(SourceText("q{t} for t in 1..100000", None))) == 100_000
        with pytest.raises(NotationError, match="more than 100,000 numbers"):
            lines("q{t} for t in 0..100000")


# -- plain transitions are read by one expression: what comes of a text is the same without it ------------------------

PIECES = [
    "p", "q", "a", "X", "ε", "%empty", ",", ",", ",", "->", "→", "for", "in", "1..2", "t", "q{t}", "'X'", '"text"',
    "*", "ask", "-", "#", "(", "a-b",
]  # fmt: skip
written = st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join) | st.sampled_from(
    ["%accept q", "p, a, ε -> q, ε",
     "p,a,X->q,X X", "q, ε, ε -> q, ε X", "ε, a, X -> q, X", "p, a, ε -> q, X for t in 1..2", "p , a , * -> q , * X",
     "p, a, ε → q, for X in", "%stack X", "q, b, ε -> p, a-b\t-"]
)  # fmt: skip


def read(text):
    """What comes of a text: the automaton and the warnings, or the error; with every word."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            pda = PDA.from_string(text)
        except NotationError as error:
            return str(error), error.line, error.column
        return pda, str(pda), [str(one.message) for one in warned]


@given(st.lists(written, max_size=6))
@examples(400)
def test_a_text_is_read_alike_with_and_without_plain_transitions(more):
    text = "\n".join(["%accept q", "p, a, ε -> q, ε", *more])
    quick = read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pda_lines, "_read_plain_line", lambda *_: None)
        assert quick == read(text)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("7/2", "3"), ("7//2", "3"), ("7%4", "3"), ("(7/4)*2-1", "1"), ("t", "9:15"), ("t+1h30", "10:45"),
        ("t-15min", "9:00"), ("t+2*15min", "9:45"), ("t-9:00", "15min"), ("n/4:02", "02"), ("n:3", "  9"),
        ("(t-8:00)/15min", "5"), ("t%1h", "15min"), ("1h/2", "30min"), ("m", "lunch"), ("10:00-30min", "9:30"),
    ],
)  # fmt: skip
def test_what_is_computed(text: str, made: str) -> None:
    values = {"t": parse_literal("9:15"), "n": parse_literal("9"), "m": parse_literal("lunch")}
    assert compute_expression(text, values) == made


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("t+1", TypeError), ("t+t", TypeError), ("m+1", TypeError), ("t:02", TypeError), ("1/0", ZeroDivisionError),
        ("x", KeyError), ("9:00-10h", ValueError), ("1.5", ValueError), ("t.real", ValueError), ("1 +", SyntaxError),
        ("2**3", ValueError), ("t*t", TypeError),
    ],
)  # fmt: skip
def test_what_is_not(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        compute_expression(text, {"t": parse_literal("9:15"), "m": "lunch"})


@given(st.integers(-50, 50), st.integers(1, 50))
def test_division_rounds_down_and_the_rest_is_what_is_left(number: int, divisor: int) -> None:
    values = {"a": number, "b": divisor}
    assert int(compute_expression("a/b*b + a%b", values)) == number
    assert 0 <= int(compute_expression("a%b", values)) < divisor


def test_ranges() -> None:
    assert list(parse_range("1..3", None) or ()) == [1, 2, 3]
    assert list(parse_range("0..10", "5") or ()) == [0, 5, 10]
    assert [str(one) for one in parse_range("8:00..9:00", "20min") or ()] == ["8:00", "8:20", "8:40", "9:00"]
    assert all(isinstance(one, Time) for one in parse_range("8:00..9:00", "20min") or ())
    assert parse_range("a..b", None) is None


@pytest.mark.parametrize(
    ("text", "step", "said"),
    [
        ("3..1", None, "write 1..3"), ("8:00..9:00", None, "by 15min"), ("8:00..9:00", "9:00", "no step"),
        ("1..3", "15min", "no step"), ("8:00..9", "1h", "a time of day and a number"), ("1..3", "0", "no step"),
        ("0..100000", None, "more than 100,000"),
    ],
)  # fmt: skip
def test_ranges_that_are_none(text: str, step: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_range(text, step)


def test_a_family_over_times_of_day() -> None:
    pda = PDA.from_string(
        '%accept 9:00\n{t}, nap, ε -> {t+30min}, ε "{t} to {t+30min}: nap" for t in 8:00..8:30 by 30min'
    )
    assert list(pda.states) == ["8:00", "8:30", "9:00"]
    assert [t.text for t in pda.transitions] == ["8:00 to 8:30: nap", "8:30 to 9:00: nap"]
