"""Automata as text."""

import warnings
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Budget, Limits, Planner, ScriptedLLM, SumLimit, Symbol, Transition
from formal_llm.automata.models.product import product
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
from formal_llm.errors import GrammarWarning, NotationError
from tests.automata.messages import from_caret, quiet
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

    def test_limits_are_kept_by_plans(self):
        llm = ScriptedLLM([2, 3])
        pda = PDA.from_string(PACKING)
        plan = Planner(pda, llm).plan(
            "Pack",
        )
        # That we travel is not asked: who stays at home packs nothing.
        assert 'To get the answer to "What now?"' in llm.questions[0].prompt
        assert str(llm.questions[1]) == "<Question: 1: Open a box | 2: Pack a thing | 3: carry it away>"
        assert "To get the next part, a step, we have" in llm.questions[1].prompt  # two questions at once are none
        assert plan.word == ("pack",)
        assert pda.without_limits.limits == Limits()
        assert pda.without_limits.transitions == pda.transitions

    def test_limits_survive_a_product(self):
        pda = PDA.from_string(PACKING)
        loop = PDA([("s", name, None, "s") for name in pda.terminals], start="s", accepting=["s"])
        assert product(pda, loop).limits == pda.limits
        free = Budget()  # chance may open and close boxes for long
        for planner in (
            Planner(pda, "test:random", constraints=[loop], budget=free),
            Planner(product(pda, loop), "test:random", budget=free),
        ):
            for _ in range(5):
                assert 1 <= planner.plan("x").word.count("pack") <= 2
        assert Planner(CFG.from_string("S -> pack S | ε"), "test:random", constraints=[
            PDA.from_string("%accept s\n%limit 1 pack\n%require 1 pack\ns, pack, ε -> s, ε")
        ]).plan("x").word == ("pack",)  # fmt: skip

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

    def test_files(self, tmp_path):
        path = tmp_path / "packing.pda"
        path.write_bytes(b"\xef\xbb\xbf" + PACKING.replace("\n", "\r\n").encode())
        assert everything(PDA.from_file(path)) == everything(PDA.from_string(PACKING))
        path.write_bytes(b"\x80\x81")
        with pytest.raises(NotationError, match="not a text file"):
            PDA.from_file(path)

    def test_a_state_without_a_way_on_is_warned_of(self):
        with pytest.warns(GrammarWarning, match="no transition leaves the state q11, .*; did you mean 'q1'"):
            PDA.from_string("%accept q1\np, a, ε -> q11, ε\np, b, ε -> q1, ε")


HEAD = "%accept f\n"


GOOD = HEAD + "p, a, ε -> f, ε\n"


BROKEN = [
    ("", None, "no transition"),
    ("p, a, ε -> f, ε", None, "%accept STATE"),
    (HEAD + "p, a, ε -> f", (2, 13), "a comma, and what is pushed"),
    (HEAD + "p, a, ε -> f g, ε", (2, 14), "a comma, and what is pushed"),
    (HEAD + "p, a -> f, ε", (2, 1), "2 parts before the arrow"),
    (HEAD + "\tp,\ta,\tb, c -> f, ε", (2, 2), "4 parts before the arrow"),
    (HEAD + "p a, b, ε -> f, ε", (2, 3), "unexpected 'a'"),
    (HEAD + "p, a, ε => f, ε", (2, 10), "instead of '=>'"),
    (HEAD + "p, a, ε —> f, ε", (2, 10), "instead of '—>'"),
    (HEAD + "p, a, ε f, ε", (2, 13), "the arrow is missing"),
    (HEAD + "p, a, ε -> f, ε -> g", (2, 17), "a second arrow"),
    (HEAD + "p, , ε -> f, ε", (2, 4), "a name is missing"),
    (HEAD + "p, a, ε -> f, ε A", (2, 15), "ε stands alone"),
    (HEAD + "(p, a, ε) -> (f, ε)", (2, 1), "without brackets"),
    (HEAD + "p, *, ε -> f, ε", (2, 4), "must be named"),
    (HEAD + "p, a, ε -> f, *", (2, 15), r"the symbol that \* before it pops"),
    (HEAD + "ε, a, ε -> f, ε", (2, 1), "ε is no state"),
    (HEAD + 'p, a, ε -> f, ε "text', (2, 17), "does not end on its line"),
    (HEAD + "p, a, 'b -> f, ε", (2, 7), "does not end on its line"),
    ("%acept f\np, a, ε -> f, ε", (1, 1), "did you mean %accept"),
    ("%start p q\n" + GOOD, (1, 10), "a second initial state"),
    ("%start\n" + GOOD, (1, 1), "names nothing"),
    ("%accept g\np, a, ε -> f, ε", (1, 9), "final state 'g' is in no transition"),
    ("%start s\n" + GOOD, (3, 1), "'p' cannot be reached from 's'"),
    (GOOD + "pp, b, ε -> f, ε", (3, 1), "cannot be reached"),
    ("%stack Z1\n" + HEAD + "p, a, Z -> f, ε", (3, 7), "never pushed.*did you mean 'Z1'"),
    ("%stack A B\n" + HEAD + "p, a, B -> f, ε", (2, 9), "no run accepts: what is popped never lies there"),
    ("%require 2 a\n" + GOOD, (2, 9), "no run accepts: no plan keeps %require 2 a"),
    (GOOD + 'aa "Ah"', (3, 1), "unknown terminal: aa"),
    (GOOD + 'a "x"\na "y"', (4, 1), "two labels"),
    (GOOD + 'a "x" cost', (3, 7), "unexpected 'cost'"),
    (GOOD + "a x=1 x=2", (3, 7), "two numbers for x"),
    (GOOD + "hello", (3, 1), "neither a transition nor a label"),
    (GOOD + "%limit a", (3, 8), "the limit has no number"),
    (GOOD + "%limit 1 b", (3, 10), "unknown terminal in a limit"),
    (GOOD + "%limit 1 a\n%limit 2 a", (4, 10), "a second %limit for a"),
    (GOOD + "%limit cost <= 3", (3, 8), "unknown quantity"),
    (GOOD + "%limit cost <= x", (3, 16), "not a number"),
    (GOOD + '%ask r "Which?"', (3, 6), "unknown state r"),
    (GOOD + "%ask p", (3, 1), "a state and a question"),
    (HEAD + "p{t}, a, ε -> f, ε", (2, 2), "unknown name t in braces"),
    (HEAD + "p{tt}, a, ε -> f, ε for tt1 in 1..2", (2, 2), "did you mean tt1"),
    (HEAD + "p{a+1}, a, ε -> f, ε for a in b, c", (2, 2), "no number"),
    (HEAD + "p{t, a, ε -> f, ε for t in 1..2", (2, 2), "brace"),
    (HEAD + "p, a{t^2}, ε -> f, ε for t in 1..2", (2, 5), "cannot be read"),
    (HEAD + "p, a{__import__('os')}, ε -> f, ε for t in 1..2", (2, 5), "unexpected|cannot be read|unknown"),
    (HEAD + "p, a, ε -> f, ε for t in 5..2", (2, 26), "write 2..5"),
    (HEAD + "for t in 1..2", (2, 1), "behind a statement"),
    (HEAD + "p, a, ε -> f, ε for t in", (2, 25), "no values"),
    (HEAD + "p, a, ε -> f, ε for t in 1..2 for t in 1..2", (2, 35), "a second clause for t"),
    (HEAD + "p, a, ε -> f, ε for t in 1..9999999", (2, 26), "more than 100,000"),
    (HEAD + "p, a, ε -> f, ε for t in 1..999 for u in 1..999", (2, 37), "more than 100,000"),
    (HEAD + "p, a\0, ε -> f, ε", None, "not a text"),
]


@pytest.mark.parametrize(("text", "place", "problem"), BROKEN)
def test_broken_automata(text, place, problem):
    with pytest.raises(NotationError, match=problem) as caught:
        PDA.from_string(text, file="x.pda")
    error = caught.value
    assert (None if error.line is None else (error.line, error.column)) == place
    assert str(error).startswith("x.pda:")
    if place is not None:
        assert from_caret(error) == error.source_line[error.column - 1 :].replace("\t", " ")


@given(st.data())
@examples(300)
def test_no_mutilation_of_a_text_crashes_the_reader(data):
    text = PACKING + "box, walk{t}, D{t} -> box, D{t-1} for t in 1..2\n"
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 5)))
    more = data.draw(
        st.sampled_from(["", ",", '"', "'", "->", "{", "}", "*", "%", "\n", " for t in", "1..", "ε", "#", "\0"])
    )
    with quiet():
        try:
            pda = PDA.from_string(text[:at] + more + text[end:])
        except NotationError as error:
            assert error.column is None or 1 <= error.column <= len(error.source_line) + 1
        else:
            assert everything(PDA.from_string(str(pda))) == everything(pda)


NAMES = st.one_of(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=4),
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

    def test_by_hand(self):
        text = """%name "trip"
%order prefix
%start p
%accept f
%stack Z
%limit 1
%require 2 a
%limit cost <= 5

p, a, Z -> p, Z Z "go \\"on\\"" decide "Further?"
p, ε, ε -> f, ε ask "Or back?"

a "Ah" "oh" cost=2
"""
        with pytest.raises(NotationError, match="no run accepts: these limits clash"):
            PDA.from_string(text)
        text = text.replace("%require 2", "%require 1")
        assert str(PDA.from_string(text)) == text

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
