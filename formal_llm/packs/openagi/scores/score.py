"""The base class of scores, which measure how close an output is to the expected value. Higher is always better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:  # texts are compared without pillow, too
    from formal_llm.packs.openagi.data.samples import ImageOrText


class Score(ABC):
    """A measure of how close an output is to the expected value.

    Attributes:
        kind: the kind of the values: ``"image"`` or ``"text"``.
        against: the kind of the expected value, if it is different.
        least, most: the ends of the scale; ``most`` is the score of a value against itself.
        unit: the unit of the scale, if it has one.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    against: ClassVar[str] = ""
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0
    unit: ClassVar[str] = ""

    @property
    def identity(self) -> dict[str, object]:
        """The factors that determine the values, as JSON data."""
        return {"score": self.name, "encoder": None}

    def __call__(self, output: ImageOrText, expected: ImageOrText) -> float:
        """Score an output against the expected value; raises the same errors as :meth:`score_pairs`."""
        return self.score_pairs([(output, expected)])[0]

    def score_pairs(self, pairs: Iterable[tuple[ImageOrText, ImageOrText]]) -> list[float]:
        """Score each output against its expected value; a score by a model processes many together.

        Raises:
            TypeError: a value is not of the kind that the score compares.
        """
        checked = list(pairs)
        for output, expected in checked:
            self._check_kind(output, self.kind)
            self._check_kind(expected, self.against or self.kind)
        return [min(max(value, self.least), self.most) for value in self._compare_many(checked)]

    def compute_mean(self, pairs: Iterable[tuple[ImageOrText, ImageOrText]]) -> float:
        """Return the mean score over pairs of output and expected value.

        Raises:
            ValueError: there are no pairs.
        """
        if not (values := self.score_pairs(pairs)):
            raise ValueError("there is nothing to score")
        return sum(values) / len(values)

    def prepare(self) -> None:  # noqa: B027  # most scores have nothing to load
        """Load the model, if the score has one, so that problems with it are reported before other work is done.

        Raises:
            ResourceNotFound: there is no such folder.
            CheckpointError: a checkpoint cannot be loaded.
            MissingDependency: a library is not installed.
        """

    def _check_kind(self, value: object, kind: str) -> None:
        if isinstance(value, str) != (kind == "text"):
            compared = f"values of kind {kind}" if not self.against else f"an {self.kind} with a {self.against}"
            raise TypeError(f"{self.name} compares {compared}, not {type(value).__name__}")

    # The following methods receive values of checked kinds; each score annotates its own classes.

    def _compare_many(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        """Score pairs of values of the right kinds; by default one after the other."""
        return [self._compare_pair(output, expected) for output, expected in pairs]

    @abstractmethod
    def _compare_pair(self, output: Any, expected: Any) -> float:
        """Score two values of the right kinds."""

    def __repr__(self) -> str:
        compared = f"{self.kind} against {self.against}" if self.against else self.kind
        return f"<{self.name}: {compared}, {self.least:g} to {self.most:g}{' ' + self.unit if self.unit else ''}>"
