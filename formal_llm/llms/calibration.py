"""The calibration of probabilities: how often answers are right, and a temperature that adjusts them.

Models are confident, and small ones more than they should be. With questions whose right options are known, this can be
measured and corrected:

- The *expected calibration error* (Naeini et al. 2015) sorts answers by the probability of the chosen option into ten
  bins of equal width. In each bin the mean probability is compared with the share of right answers; the error is the
  mean of the differences, weighted by the number of answers (Guo et al. 2017, arXiv 1706.04599, section 2).
- A *temperature* T replaces the probabilities p by p^(1/T), normalised (section 4.2 there). It changes no choice. It is
  fitted so that the probability of the chosen option predicts whether it is right, by minimising the mean logarithmic
  loss of that prediction. The likelihood of "the" right option would not do, since there may be several.
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
#: The range of the temperatures that are searched, in equal steps of the logarithm, then between the best neighbours.
LEAST, MOST = 0.05, 50.0
_STEPS = 200
#: The smallest probability whose logarithm is computed.
_TINY = 1e-12


@dataclass(frozen=True)
class Judged:
    """The probabilities of the options of a question, and which options are right.

    Attributes:
        probabilities: those of the options, in their order; they sum to 1.
        right: the numbers of the right options, from 1.
    """

    probabilities: tuple[float, ...]
    right: frozenset[int]

    @classmethod
    def of(cls, answer: Answer, right: frozenset[int]) -> Judged | None:
        """Create it from an answer; None if the answer has no probabilities."""
        if answer.probabilities is None:
            return None
        return cls(tuple(share for _, share in sorted(answer.probabilities.items())), right)

    @property
    def chosen(self) -> int:
        """The number of the most probable option, the first of equals."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__) + 1

    @property
    def correct(self) -> bool:
        """Whether the chosen option is right."""
        return self.chosen in self.right

    def sureness(self, temperature: float = 1.0) -> float:
        """Return the probability of the chosen option at a temperature."""
        return max(tempered(self.probabilities, temperature))


def tempered(probabilities: Sequence[float], temperature: float) -> list[float]:
    """Return the probabilities at a temperature: each to the power of 1 / T, normalised."""
    top = max(probabilities)
    logs = [(math.log(share) - math.log(top)) / temperature if share > 0 else -math.inf for share in probabilities]
    powers = [math.exp(log) for log in logs]
    total = math.fsum(powers)
    return [power / total for power in powers]


@dataclass(frozen=True)
class Bin:
    """The answers whose probability lies in an interval: their number, mean probability, and share of right ones."""

    low: float
    high: float
    count: int
    sureness: float
    right: float


def reliability(judged: Sequence[Judged], temperature: float = 1.0) -> list[Bin]:
    """Return the bins of some answers, without the empty ones."""
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
    """Compute the expected calibration error, from 0 to 1.

    Raises:
        ValueError: there are no answers.
    """
    if not judged:
        raise ValueError("without answers there is no calibration error")
    return math.fsum(b.count * abs(b.sureness - b.right) for b in reliability(judged, temperature)) / len(judged)


def log_loss(judged: Sequence[Judged], temperature: float = 1.0) -> float:
    """Compute the mean logarithmic loss of the chosen options' probabilities as predictions of being right."""
    found = []
    for one in judged:
        sure = one.sureness(temperature)
        found.append(-math.log(max(sure if one.correct else 1 - sure, _TINY)))
    return math.fsum(found) / len(found)


def fit_temperature(judged: Sequence[Judged]) -> float:
    """Find the temperature with the smallest :func:`log_loss`, from 0.05 to 50, to about six digits.

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
    return math.exp(_find_minimum(loss, logs[max(best - 1, 0)], logs[min(best + 1, _STEPS)]))


def _find_minimum(value: Callable[[float], float], low: float, high: float) -> float:
    """Find the minimum of a function with a single valley between two points, by golden section search."""
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if value(left) <= value(right):
            high = right
        else:
            low = left
    return (low + high) / 2


@dataclass(frozen=True)
class Calibration:
    """The temperature fitted for an LLM, and its quality on questions that were not used for fitting.

    Attributes:
        llm: its provider string.
        fitted_on, measured_on: the numbers of answers.
        error_before, error_after: the expected calibration error on the answers for measuring; None without any.
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
        """Fit a temperature to some answers and measure it on others.

        Raises:
            ValueError: there are no answers to fit on.
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
        """Write the calibration to a file, which ``calibrated:FILE`` reads."""
        Path(path).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a calibration that :meth:`save` wrote.

        Raises:
            NotationError: the file cannot be read, or is no calibration.
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
