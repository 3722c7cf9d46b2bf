"""Calibration: errors and temperatures, against their definitions."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import Answer
from formal_llm.errors import NotationError
from formal_llm.llms.calibration import (
    Calibration,
    Judged,
    calibration_error,
    fit_temperature,
    log_loss,
    reliability,
    tempered,
)
from tests.strategies import examples

SHARES = st.lists(st.floats(0.01, 1), min_size=2, max_size=5).map(lambda raw: tuple(one / sum(raw) for one in raw))
JUDGED = st.builds(Judged, SHARES, st.frozensets(st.integers(1, 5), min_size=1, max_size=3))


@given(SHARES, st.floats(0.2, 5))
def test_a_temperature_is_a_power(shares: tuple[float, ...], temperature: float) -> None:
    total = sum(share ** (1 / temperature) for share in shares)
    found = tempered(shares, temperature)
    assert found == pytest.approx([share ** (1 / temperature) / total for share in shares])
    assert max(range(len(shares)), key=found.__getitem__) == max(range(len(shares)), key=shares.__getitem__)


def test_what_has_no_probability_gets_none() -> None:
    assert tempered((0.0, 1.0), 3.0) == [0.0, 1.0]


@given(st.lists(JUDGED, min_size=1, max_size=12), st.floats(0.3, 3))
def test_the_error_is_that_of_the_definition(judged: list[Judged], temperature: float) -> None:
    total = 0.0
    for low in range(10):
        members = []
        for one in judged:
            assume(abs(one.sureness(temperature) * 10 % 1 - 0.5) < 0.4999)  # not on the edge of a bin
            powers = [share ** (1 / temperature) for share in one.probabilities]
            sure = max(powers) / sum(powers)
            if min(int(sure * 10), 9) == low:
                members.append((sure, one.probabilities.index(max(one.probabilities)) + 1 in one.right))
        if members:
            total += abs(sum(sure for sure, _ in members) - sum(right for _, right in members))
    assert calibration_error(judged, temperature) == pytest.approx(total / len(judged), abs=1e-9)
    assert sum(one.count for one in reliability(judged, temperature)) == len(judged)


@given(st.lists(JUDGED, min_size=1, max_size=12))
@examples(25)
def test_no_other_temperature_foretells_better(judged: list[Judged]) -> None:
    found = fit_temperature(judged)
    least = log_loss(judged, found)
    for step in range(60):
        assert least <= log_loss(judged, 0.05 * 1000 ** (step / 59)) + 1e-6


def test_the_temperature_that_made_answers_too_sure_is_found() -> None:
    rng = random.Random(1)
    judged = []
    for _ in range(1_200):
        raw = [rng.expovariate(1) for _ in range(4)]
        true = [one / sum(raw) for one in raw]
        (right,) = rng.choices(range(1, 5), true)
        judged.append(Judged(tuple(tempered(true, 1 / 2.5)), frozenset({right})))
    assert fit_temperature(judged) == pytest.approx(2.5, rel=0.15)
    assert calibration_error(judged, 2.5) < 0.05 < 0.1 < calibration_error(judged)


def test_answers_are_judged_by_what_they_chose() -> None:
    judged = Judged.of(Answer((2,), {1: 0.3, 2: 0.7}), frozenset({2}))
    assert judged is not None and judged.correct and judged.chosen == 2 and judged.sureness() == pytest.approx(0.7)
    assert Judged.of(Answer((2,)), frozenset({2})) is None


def test_nothing_to_fit_on() -> None:
    with pytest.raises(ValueError, match="no temperature can be fitted"):
        Calibration.fit("x", [])
    with pytest.raises(ValueError, match="without answers"):
        calibration_error([])


def test_a_file_keeps_what_was_fitted(tmp_path: Path) -> None:
    sure = [Judged((0.9, 0.1), frozenset({1 + number % 2})) for number in range(8)]
    found = Calibration.fit("minilm", sure, sure)
    found.save(tmp_path / "a.json")
    assert Calibration.load(tmp_path / "a.json") == found
    assert found.error_before == pytest.approx(0.4) and found.accuracy == 0.5 and found.measured_on == 8
    assert found.error_after is not None and math.isclose(found.error_after, 0.0, abs_tol=0.05)
    assert Calibration.fit("minilm", sure).error_before is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no calibration can be read"),
        ("[]", "table"),
        ('{"llm": "x", "temperature": 1}', "fitted_on"),
        ('{"llm": "x", "temperature": 0, "fitted_on": 1}', "above 0"),
        ('{"llm": "x", "temperature": "a", "fitted_on": 1}', "number"),
        ('{"llm": "x", "temprature": 1, "temperature": 1, "fitted_on": 1}', "temprature"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(NotationError, match=words) as caught:
        Calibration.load(file)
    assert caught.value.file == str(file)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotationError, match="no such file"):
        Calibration.load(tmp_path / "a.json")
