"""What a probability of an answer is worth: how often it is right, and a temperature that mends it.

Models are sure of themselves, and small ones more than they should be. Where questions with known right options are
at hand, this can be measured and mended:

- The *expected calibration error* (Naeini et al. 2015) sorts answers by the probability of what was chosen into ten
  bins of equal width. In each, the mean probability stands against the share of right answers; their distance,
  weighted by the number of answers, is the error (Guo et al. 2017, arXiv 1706.04599, section 2).
- A *temperature* T makes of the probabilities p the p^(1/T), normalised (section 4.2 there). It changes no choice. It
  is fitted so that the probability of what is chosen foretells whether it is right: by the least mean logarithmic loss
  of that. A question may have several right options, so the likelihood of "the" right one would not do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from formal_llm.authored.files import parse_json, read_text
from formal_llm.authored.tables import AlternativeShape, Keys, problems
from formal_llm.errors import NotationError
from formal_llm.llms.question import Answer

BINS = 10
#: The temperatures that are looked through, evenly by their logarithms; then between the two best neighbours.
LEAST, MOST = 0.05, 50.0
_STEPS = 200
#: The least probability that a logarithm is taken of.
_TINY = 1e-12


@dataclass(frozen=True)
class Judged:
    """The probabilities of the options of a question, and which of them are right.

    Attributes:
        probabilities: of the options, in their order; they sum to 1.
        right: the numbers of the right options, from 1.
    """

    probabilities: tuple[float, ...]
    right: frozenset[int]

    @classmethod
    def of(cls, answer: Answer, right: frozenset[int]) -> Judged | None:
        """An answer, judged; None where it came without probabilities."""
        if answer.probabilities is None:
            return None
        return cls(tuple(share for _, share in sorted(answer.probabilities.items())), right)

    @property
    def chosen(self) -> int:
        """The most probable option, of equals the first."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__) + 1

    @property
    def correct(self) -> bool:
        """Whether it is right."""
        return self.chosen in self.right

    def sureness(self, temperature: float = 1.0) -> float:
        """The probability of the chosen option, at a temperature."""
        return max(tempered(self.probabilities, temperature))


def tempered(probabilities: Sequence[float], temperature: float) -> list[float]:
    """Probabilities at a temperature: each to the power of 1 / T, normalised."""
    top = max(probabilities)
    logs = [(math.log(share) - math.log(top)) / temperature if share > 0 else -math.inf for share in probabilities]
    powers = [math.exp(log) for log in logs]
    total = math.fsum(powers)
    return [power / total for power in powers]


@dataclass(frozen=True)
class Bin:
    """The answers whose probability lies in an interval: how many, their mean probability, the share of right ones."""

    low: float
    high: float
    count: int
    sureness: float
    right: float


def reliability(judged: Sequence[Judged], temperature: float = 1.0) -> list[Bin]:
    """The bins of some answers; empty ones are left out."""
    members: dict[int, list[tuple[float, bool]]] = {}
    for one in judged:
        sure = one.sureness(temperature)
        members.setdefault(min(int(sure * BINS), BINS - 1), []).append((sure, one.correct))
    return [
        Bin(
            place / BINS,
            (place + 1) / BINS,
            len(pairs),
            math.fsum(sure for sure, _ in pairs) / len(pairs),
            sum(right for _, right in pairs) / len(pairs),
        )
        for place, pairs in sorted(members.items())
    ]


def calibration_error(judged: Sequence[Judged], temperature: float = 1.0) -> float:
    """The expected calibration error, from 0 to 1.

    Raises:
        ValueError: there are no answers.
    """
    if not judged:
        raise ValueError("without answers there is no calibration error")
    return math.fsum(b.count * abs(b.sureness - b.right) for b in reliability(judged, temperature)) / len(judged)


def log_loss(judged: Sequence[Judged], temperature: float = 1.0) -> float:
    """The mean logarithmic loss of the probability of what is chosen as a forecast of whether it is right."""
    found = []
    for one in judged:
        sure = one.sureness(temperature)
        found.append(-math.log(max(sure if one.correct else 1 - sure, _TINY)))
    return math.fsum(found) / len(found)


def fit_temperature(judged: Sequence[Judged]) -> float:
    """The temperature with the least :func:`log_loss`, from 0.05 to 50; to about six digits.

    Raises:
        ValueError: there are no answers.
    """
    if not judged:
        raise ValueError("no answer with probabilities was judged, so no temperature can be fitted")
    span = math.log(MOST / LEAST)
    logs = [math.log(LEAST) + span * step / _STEPS for step in range(_STEPS + 1)]

    def loss(log: float) -> float:
        return log_loss(judged, math.exp(log))

    best = min(range(len(logs)), key=lambda place: loss(logs[place]))
    return math.exp(_least(loss, logs[max(best - 1, 0)], logs[min(best + 1, _STEPS)]))


def _least(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley between two points is least, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if value(left) <= value(right):
            high = right
        else:
            low = left
    return (low + high) / 2


# -- what was fitted, in a file --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """What was fitted for an LLM, and how good it is on questions that it was not fitted on.

    Attributes:
        llm: its provider string.
        temperature: what was fitted.
        fitted_on, measured_on: how many answers.
        error_before, error_after: the expected calibration error of those that were measured on; None without any.
        accuracy: the share of right ones among these.
    """

    llm: str
    temperature: float
    fitted_on: int
    measured_on: int = 0
    error_before: float | None = None
    error_after: float | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"a temperature is above 0, not {self.temperature}")

    @classmethod
    def fit(cls, llm: str, fitting: Sequence[Judged], held_out: Sequence[Judged] = ()) -> Calibration:
        """What fits some answers, measured on others.

        Raises:
            ValueError: there is nothing to fit on.
        """
        temperature = fit_temperature(fitting)
        if not held_out:
            return cls(llm, temperature, len(fitting))
        return cls(
            llm,
            temperature,
            len(fitting),
            len(held_out),
            calibration_error(held_out),
            calibration_error(held_out, temperature),
            sum(one.correct for one in held_out) / len(held_out),
        )

    def save(self, path: str | Path) -> None:
        """Write it into a file, which ``calibrated:FILE`` reads."""
        Path(path).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """What :meth:`save` wrote.

        Raises:
            NotationError: the file cannot be read, or is none of these.
        """
        text, file = read_text(path), str(path)
        try:
            data: Any = parse_json(text, once=True)
            found = next(problems(data, _SHAPE), None)
            if found is None:
                return cls(**data)
        except ValueError as error:
            raise NotationError(f"no calibration can be read: {error}", file=file, suggestion=_HINT) from None
        raise NotationError(found.problem, file=file, expected=found.expected, suggestion=found.suggestion or _HINT)


_HINT = "formal-llm calibrate writes such a file"
_SHAPE = Keys(
    {
        "llm": str,
        "temperature": float,
        "fitted_on": int,
        "measured_on": int,
        **dict.fromkeys(("error_before", "error_after", "accuracy"), AlternativeShape((float, NoneType))),
    },
    needed=("llm", "temperature", "fitted_on"),
)
