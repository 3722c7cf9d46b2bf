"""The calculator, against Python's own evaluation of generated expressions."""

from __future__ import annotations

import ast
import math
import operator
import pickle
import time
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm.agents.tools.calculator import MOST_CHARACTERS, calculate
from formal_llm.errors import NotationError


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("10^2", "100"),
        ("2**3", "8"),
        ("50% of 80", "40"),
        ("80 + 10%", "88"),
        ("80 - 10%", "72"),
        ("80 + (10%)", "80.1"),
        ("10% + 5%", "0.15"),
        ("80 + 10% of 50", "85"),
        ("80 * 10%", "8"),
        ("100 / 50% of 80", "2.5"),
        ("1/2 of 80", "40"),
        ("1,234.5", "1234.5"),
        ("1 000", "1000"),
        ("1\u202f234\u202f567", "1234567"),
        ("3/4", "0.75"),
        ("5!", "120"),
        ("-2^2", "-4"),
        ("2^-1", "0.5"),
        ("2^3^2", "512"),
        ("(-2)^2", "4"),
        ("2(3+4)", "14"),
        ("2pi", "6.28318530718"),
        ("(1+2)(3+4)", "21"),
        ("6/2(1+2)", "9"),
        ("7 mod 3", "1"),
        ("-7 mod 3", "2"),
        ("7 // 2", "3"),
        ("√16+9", "13"),
        ("2×3÷4−1", "0.5"),
        ("2·3", "6"),
        ("5²", "25"),
        ("10⁻²", "0.01"),
        ("2 x 3", "6"),
        ("2 + 2 =", "4"),
        ("0.1+0.2", "0.3"),
        ("1/3*3", "1"),
        ("sqrt(2)^2", "2"),
        ("max(1, 5, 3)", "5"),
        ("sqrt(1,234.0)", "35.1283361405"),
        ("round(2.345, 2)", "2.35"),
        ("floor(-2.5) + ceil(2.1)", "0"),
        ("log(1000) + ln(e) + log2(8) + log(9, 3)", "9"),
        ("sin(pi/6)", "0.5"),
        (".5 + 5.", "5.5"),
        ("1e3", "1000"),
        ("1.0000001^10000000", "2.71828169413"),
        ("100!/98!", "9900"),
        ("--3", "3"),
        ("3!", "6"),
        ("-3!", "-6"),
        ("min(4,2)", "2"),
        ("mean(1, 2, 6)", "3"),
        ("2^0.5", "1.41421356237"),
        ("exp(0)", "1"),
        ("cbrt(-8)", "-2"),
    ],
)
def test_expressions(expression: str, text: str) -> None:
    assert calculate(expression).text == text


@pytest.mark.parametrize(
    ("expression", "column", "said", "way_out"),
    [
        ("5 km + 3 m", 3, "units are not calculated with: km", "without units"),
        ("$5 + 3", 1, "amounts of money", "without currency"),
        ("3 + 5€", 6, "amounts of money", "without currency"),
        ("min + 3", 1, "units", "without units"),
        ("7 % 3", 3, "two ways", "7 mod 3"),
        ("3!!", 3, "two ways", "(3!)!"),
        ("max(1,234)", 5, "one number or as several", "1234"),
        ("1,23", 2, "this comma parts nothing", "1.5"),
        ("2 3", 3, "side by side", "operator"),
        ("2 +", 4, "ends too early", "a number is missing"),
        ("(2", 1, "this bracket is not closed", ""),
        ("2)", 2, "no opening bracket", ""),
        ("()", 2, "a number is missing", ""),
        ("min()", 1, "min takes", ""),
        ("sqrt 4", 6, "needs brackets", "sqrt(...)"),
        ("averge(2)", 1, "unknown name: averge", "did you mean average?"),
        ("1/0", 2, "division by zero", ""),
        ("2 * (3 / (1 - 1))", 8, "division by zero", ""),
        ("sqrt(-1)", 1, "no real number", ""),
        ("x = 5", 1, "x cannot stand here", ""),
        ("2 = 5", 5, "equations", "only what is to be calculated"),
        ("[1]", 1, "no bracket", "( and )"),
        ("__import__('os')", 1, "unknown name", ""),
        ("1.2.3", 4, "side by side", ""),
        ("sin(30°)", 7, "radians", "sin(radians(30))"),
        ("٣ + 1", 1, "means nothing here", ""),
    ],
)
def test_what_cannot_be_calculated_is_told_with_the_place(
    expression: str, column: int, said: str, way_out: str
) -> None:
    with pytest.raises(NotationError) as caught:
        calculate(expression)
    error = caught.value
    assert (error.column, error.source_line) == (column, expression)
    assert said in error.problem and way_out in (error.suggestion or "")
    caret = str(error).splitlines()[2]
    assert caret.index("^") - caret.index("|") - 2 == column - 1
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "expression",
    [
        "9^9^9^9",
        "(9^999)^999",
        "1000!^1000",
        "1001!",
        "10^(10^400)",
        "1e999999999",
        "(" * 500,
        "-" * 1900 + "1",
        "√" * 500 + "4",
        "9" * (MOST_CHARACTERS + 1),
        "2^" * 900 + "2",
        "choose(10^9, 5*10^8)",
        "1!" * 900,
        "",
        "   ",
        "\x00",
        "exp(exp(exp(9)))",
        "*".join(["9^999"] * 300),
        "+".join(f"1/{n}" for n in range(10**8 + 1, 10**8 + 190)) + "$",
    ],
)
def test_what_is_too_large_is_an_error_and_no_hang(expression: str) -> None:
    begun = time.process_time()
    with pytest.raises(NotationError):
        calculate(expression)
    assert time.process_time() - begun < 2


def test_exact() -> None:
    assert calculate("0.1 + 0.2").value == Fraction(3, 10) and calculate("0.1 + 0.2").exact
    assert not calculate("1/3").exact and calculate("1/3").value == Fraction(1, 3)
    assert not calculate("pi").exact
    assert str(calculate("1/8")) == "0.125"


# -- against Python ----------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(st.integers(0, 99).map(str), st.decimals(0, 99, places=2, allow_nan=False).map(str))
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
FUNCTIONS = {"abs": abs, "min": min, "max": max, "floor": math.floor, "ceil": math.ceil}


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", " - ", " * "]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
        st.tuples(inner, st.integers(-3, 3)).map(lambda both: f"({both[0]})**{both[1]}"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda all_: f"{all_[0]}({all_[1]}, {all_[2]})"),
        st.tuples(st.sampled_from(["abs", "floor", "ceil"]), inner).map(lambda all_: f"{all_[0]}({all_[1]})"),
    )


EXPRESSIONS = st.recursive(NUMBERS, _combined, max_leaves=8)


def exactly(node: ast.AST, text: str) -> Fraction:
    """What Python's own syntax tree of an expression means, in fractions."""
    match node:
        case ast.Expression():
            return exactly(node.body, text)
        case ast.Constant():
            return Fraction(str(ast.get_source_segment(text, node)))
        case ast.UnaryOp():
            return -exactly(node.operand, text)
        case ast.BinOp():
            return Fraction(OPERATORS[type(node.op)](exactly(node.left, text), exactly(node.right, text)))
        case ast.Call():
            assert isinstance(node.func, ast.Name)
            return Fraction(FUNCTIONS[node.func.id](*(exactly(argument, text) for argument in node.args)))
    raise AssertionError(node)


def python(text: str) -> Fraction | None:
    try:
        return exactly(ast.parse(text.strip(), mode="eval"), text.strip())
    except ZeroDivisionError:
        return None


@given(EXPRESSIONS)
def test_the_value_is_pythons(text: str) -> None:
    assume(not any(part.startswith("0") and part.strip("0.") and part[1:2].isdigit() for part in text.split()))
    expected = python(text)
    if expected is None:
        with pytest.raises(NotationError, match="division by zero"):
            calculate(text)
        return
    assume(max(expected.numerator.bit_length(), expected.denominator.bit_length()) < 900)
    found = calculate(text)
    if isinstance(found.value, Fraction):
        assert found.value == expected
    assert float(found.value) == pytest.approx(float(expected), rel=1e-9)
    assert float(found.text) == pytest.approx(float(expected), rel=1e-9)
    if found.exact:
        assert Fraction(found.text) == expected


@given(EXPRESSIONS, st.sampled_from([("*", "×"), ("/", "÷"), ("-", "−"), ("**", "^"), ("(", " ( ")]))
def test_other_signs_mean_the_same(text: str, signs: tuple[str, str]) -> None:
    plain, other = signs
    assume(plain != "*" or "**" not in text)
    assume(plain != "/" or "//" not in text)
    if python(text) is not None:
        assert calculate(text.replace(plain, other)).value == calculate(text).value


@given(st.text("0123456789.,+-*/^()!%√π =emodfxsinqrt$€k\n\t", max_size=30) | st.text(max_size=20))
def test_any_text_is_calculated_or_refused(text: str) -> None:
    try:
        assert calculate(text).text
    except NotationError as error:
        assert error.problem and str(error)
