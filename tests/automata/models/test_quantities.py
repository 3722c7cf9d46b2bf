"""Amounts and limits."""

from __future__ import annotations

import copy
import pickle
import warnings
from datetime import time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Behaviour, Limits, SumLimit, Symbol
from formal_llm.automata.models.quantities import (
    TIME,
    Amount,
    amount,
    clock_text,
    format_amount,
    read_amount,
    read_clock,
    seconds_since_midnight,
    unit_of,
    unit_problem,
)
from formal_llm.errors import AutomatonError, GrammarError, GrammarWarning
from tests.oracles import all_words, bounds_of, keeps
from tests.strategies import LETTERS, amounts, examples, limits

plain = st.integers(0, 10**9) | st.decimals(0, 10**6, places=2)
money = st.builds(
    Amount, st.integers(0, 999) | st.decimals(0, 10**6, places=2), st.sampled_from(["€", "$", "EUR", "CHF"])
)
durations = st.integers(0, 10**6).map(lambda seconds: Amount(seconds, TIME))


@given(plain | money | durations)
def test_what_is_printed_is_read_back(value: Decimal) -> None:
    again = read_amount(format_amount(value))
    assert again == value
    assert (unit_of(again), format_amount(again)) == (unit_of(value), format_amount(value))
    for same in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (same, unit_of(same)) == (value, unit_of(value))


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("1h30", 5400, "1h30"), ("1h30min", 5400, "1h30"), ("90min", 5400, "1h30"), ("1.5h", 5400, "1h30"),
        ("1h05", 3900, "1h05"), ("2h", 7200, "2h"), ("45s", 45, "45s"), ("1h30s", 3630, "1h30s"), ("0min", 0, "0min"),
        ("90m", 5400, "1h30"), ("1h30m", 5400, "1h30"), ("1.5m", 90, "1min30s"), ("5m10s", 310, "5min10s"),
    ],
)  # fmt: skip
def test_durations_are_seconds_and_print_as_times(text: str, seconds: int, printed: str) -> None:
    value = read_amount(text)
    assert (value, str(value)) == (Amount(seconds, TIME), printed)


def test_money_is_exact_and_keeps_its_cents() -> None:
    assert format_amount(read_amount("12.50")) == "12.50"
    assert sum([Decimal(amount("0.10"))] * 3) == Decimal("0.3")
    assert format_amount(read_amount("12.50€")) == "€12.50" == str(amount("€12.50"))
    assert amount(0.1) == Decimal("0.1")
    assert Amount(1, "€") != Amount(1, "$") != Decimal(1)
    assert len({Amount(1, "€"), Amount(1, "€"), Amount(1, TIME)}) == 2


def test_times_of_python_are_taken() -> None:
    assert amount(timedelta(hours=1, minutes=5)) == read_amount("1h05")
    assert seconds_since_midnight(time(9, 5)) == seconds_since_midnight("9:05") == read_clock("9:05") == 9 * 3600 + 300
    with pytest.raises(ValueError, match="fraction of a second"):
        amount(timedelta(milliseconds=1))


@given(st.integers(0, 100 * 3600 - 1))
def test_times_of_day_are_read_back(seconds: int) -> None:
    assert read_clock(clock_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["1,5", "9:15", "-1", "", "1h75", "5k", "nan", "inf", "1e999", "x", "1..2", "1.3333s"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|time|comma|hour|second"):
        read_amount(text)


@pytest.mark.parametrize("text", ["9", "9.15", "9:60", "9h15", "", "noon"])
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="no time of day"):
        read_clock(text)


def test_one_quantity_has_one_unit() -> None:
    assert unit_problem("t", [("a", amount("1h")), ("b", 0), ("c", amount("5min"))]) is None
    assert "1h (a) and 5 (b)" in str(unit_problem("t", [("a", amount("1h")), ("b", 5)]))


some_limits = limits(LETTERS, ("cost", "time"))
SYMBOLS = {"a": Symbol(numbers={"cost": 1, "time": 0.5}), "b": Symbol(numbers={"cost": 0.1}), "c": Symbol()}
NUMBERS = {name: symbol.numbers for name, symbol in SYMBOLS.items()}
WORDS = list(all_words(LETTERS, 4))


def kept(bounds):
    """The words that keep some limits, by the oracle."""
    return {word for word in WORDS if keeps(word, bounds, LETTERS, SYMBOLS)}


class TestAnd:
    @given(some_limits, some_limits)
    @examples(80)
    def test_is_the_intersection(self, one, other):
        both = one & other
        assert kept(both) == kept(one) & kept(other)
        assert (both, hash(both)) == (other & one, hash(other & one))
        assert one & one == one & Limits() == one

    def test_a_lifted_limit_keeps_the_default_of_the_other(self):
        both = Limits({"a": None}, default=1) & Limits(default=3)
        assert (both.most("a"), both.most("b")) == (3, 1)


class TestValue:
    @given(some_limits)
    def test_what_says_nothing_is_left_out(self, bounds):
        said = Limits({**bounds.at_most, "z": bounds.default}, {**bounds.at_least, "z": 0}, bounds.default, bounds.sums)
        assert said == bounds
        assert hash(said) == hash(bounds)

    @pytest.mark.parametrize("zero", [0, 0.0, "0h", "€0", "0.00"])
    def test_a_sum_of_at_least_0_says_nothing(self, zero):
        assert SumLimit("cost", 3, zero) == SumLimit("cost", 3)
        assert SumLimit("cost", 3, zero).lines() == ["%limit cost <= 3"]
        assert Limits(sums=(SumLimit("cost", at_least=zero),)) == Limits()
        assert SumLimit("cost", 0, zero).lines() == ["%limit cost <= 0"]

    def test_sums_of_one_quantity_are_merged_to_the_tighter(self):
        bounds = Limits(sums=(SumLimit("x", 5), SumLimit("x", 3, 1), SumLimit("x", at_least=2)))
        assert bounds.sums == (SumLimit("x", 3, 2),)

    @pytest.mark.parametrize(("one", "other"), [("€30", "$50"), ("€30", "$20"), ("€30", "1h"), ("30", "$20")])
    def test_two_units_of_one_quantity_are_refused(self, one, other):
        # Merged by number, one of the two bounds was lost.
        for lower in (None, other):
            second = SumLimit("cost", at_least=lower) if lower else SumLimit("cost", other)
            with pytest.raises(ValueError, match="cost is given in two units"):
                Limits(sums=(SumLimit("cost", one), second))
            with pytest.raises(ValueError, match="cost is given in two units"):
                Limits(sums=(SumLimit("cost", one),)) & Limits(sums=(second,))
        with pytest.raises(ValueError, match="cost is given in two units"):
            Limits(sums=(SumLimit("cost", at_most=one, at_least=other),))
        text = f'%order forward\n%limit cost <= {one}\n%limit cost <= {other}\nS -> a S | a\na "A" cost=€10\n'
        with pytest.raises(GrammarError, match="cost is given in two units") as caught:
            CFG.from_string(text)
        assert (caught.value.line, caught.value.column) == (3, 8)

    def test_units_that_two_sets_of_rules_do_not_share_are_told(self):
        euros, dollars = (
            Behaviour.from_string(
                f'(define b (:states (a (:numbers (cost {one})))) (:limits "%limit cost <= {one}") (:behavior a))'
            )
            for one in ("€30", "$50")
        )
        with pytest.raises(AutomatonError, match="cost is given in two units"):
            euros & dollars

    def test_truth(self):
        assert not Limits()
        assert not Limits({"a": None}, {"b": 0})
        assert Limits(default=0)
        assert Limits({"a": 0})
        assert Limits(at_least={"a": 1})
        assert Limits(sums=(SumLimit("x", 0),))

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Limits({"a": -1}),
            lambda: Limits({"a": 1.5}),
            lambda: Limits({"a": True}),
            lambda: Limits(at_least={"a": -1}),
            lambda: Limits(at_least={"a": "1"}),
            lambda: Limits(default=-1),
            lambda: Limits(sums=(SumLimit("cost", -1),)),
            lambda: Limits(sums=(SumLimit("cost", at_least=-0.5),)),
            lambda: Limits(sums=(SumLimit("cost", float("inf")),)),
            lambda: Limits(sums=(SumLimit("cost", float("nan")),)),
            lambda: Limits(sums=(SumLimit("cost", at_least=float("inf")),)),
            lambda: Limits(sums=(SumLimit("cost", at_least=float("nan")),)),
            lambda: Limits(sums=(SumLimit("cost", 5), SumLimit("cost", float("nan")))),
            lambda: Limits(sums=(SumLimit("cost", 5),)) & Limits(sums=(SumLimit("cost", float("inf")),)),
        ],
    )
    def test_counts_are_whole_and_nothing_is_negative_or_infinite(self, make):
        with pytest.raises(ValueError, match="must"):
            make()


class TestLines:
    @given(some_limits)
    @examples(100)
    def test_are_read_back_by_the_notation(self, bounds):
        rule = "S -> a S | b S | c S | ε\na cost=1 time=0.5\nb cost=0.1"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrammarWarning)
            possible = _possible(bounds)
            assert CFG.from_string("\n".join([*possible.lines(), rule])).limits == possible

    def test_all_kinds(self):
        bounds = Limits({"a": 1, "b": 1, "c": None}, {"a": 1, "b": 2}, 3, (SumLimit("x", 2.5, 1),))
        assert bounds.lines() == [
            "%limit 3",
            "%limit 1 a b",
            "%limit * c",
            "%require 1 a",
            "%require 2 b",
            "%limit 1 <= x <= 2.5",
        ]
        assert Limits().lines() == []


def _possible(bounds):
    """The limits without lower bounds, under which the language would be empty."""
    sums = tuple(SumLimit(s.quantity, s.at_most) for s in bounds.sums if s.at_most is not None)
    return Limits(bounds.at_most, {}, bounds.default, sums)


def spelled(bounds):
    """Every single limit of a grammar over LETTERS as (line, test)."""
    return [(bound.line, bound) for bound in bounds.bounds(LETTERS, NUMBERS)]


class TestBounds:
    @given(some_limits)
    @examples(80)
    def test_without_drops_exactly_one(self, bounds):
        lines = [line for line, _ in spelled(bounds)]
        assert len(set(lines)) == len(lines)
        for line in lines:
            assert [other for other, _ in spelled(bounds.without(line))] == [other for other in lines if other != line]

    def test_names_with_blanks(self):
        # An automaton written by hand may read any strings.
        bounds = Limits({"wash hands": 1, "wash": 1}, {"wash hands": 2})
        made = bounds.bounds(["wash hands", "wash"], {})
        for bound in made:
            rest = bounds.without(bound.line).bounds(["wash hands", "wash"], {})
            assert [other.line for other in rest] == [other.line for other in made if other != bound]

    @given(amounts, st.dictionaries(st.sampled_from(LETTERS), amounts))
    def test_fractions_are_scaled_to_whole_numbers_exactly(self, edge, prices):
        symbols = {name: Symbol(numbers={"cost": price}) for name, price in prices.items()}
        numbers = {name: symbol.numbers for name, symbol in symbols.items()}
        bounds = Limits(sums=(SumLimit("cost", edge),))
        ((exact, _, most),) = bounds_of(bounds, (), symbols)
        (bound,) = bounds.bounds(LETTERS, numbers)
        pairs = [(bound.most, most), *((bound.weights.get(name, 0), exact.get(name, 0)) for name in LETTERS)]
        assert all(isinstance(whole, int) and bool(whole) == bool(part) for whole, part in pairs)
        assert len({whole / part for whole, part in pairs if part}) <= 1
