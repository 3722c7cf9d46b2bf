"""What a score is: how near what came out is to what was expected. Higher is always better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from PIL import Image

from formal_llm.packs.openagi.data.samples import ImageOrText


class Score(ABC):
    """A score.

    Attributes:
        name: its name.
        kind: of what it compares: ``"image"`` or ``"text"``.
        against: the kind of what was expected, where that is another.
        least, most: the ends of its scale; ``most`` is what a value gets against itself.
        unit: what its numbers are, where they have a unit.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    against: ClassVar[str] = ""
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0
    unit: ClassVar[str] = ""

    @property
    def identity(self) -> dict[str, object]:
        """What the values depend on, as JSON data."""
        return {"score": self.name, "encoder": None}

    def __call__(self, output: ImageOrText, expected: ImageOrText) -> float:
        """How near an output is to what was expected; raises what :meth:`many` does."""
        return self.many([(output, expected)])[0]

    def many(self, pairs: Iterable[tuple[ImageOrText, ImageOrText]]) -> list[float]:
        """How near each output is to what was expected; a score by a model looks at many together.

        Raises:
            TypeError: a value is not of the kind that is compared.
        """
        given = list(pairs)
        for output, expected in given:
            self._check(output, self.kind)
            self._check(expected, self.against or self.kind)
        return [min(max(value, self.least), self.most) for value in self._compare_many(given)]

    def mean(self, pairs: Iterable[tuple[ImageOrText, ImageOrText]]) -> float:
        """The mean over pairs of output and expected value.

        Raises:
            ValueError: there is no pair.
        """
        if not (values := self.many(pairs)):
            raise ValueError("there is nothing to score")
        return sum(values) / len(values)

    def prepare(self) -> None:  # noqa: B027  # most scores have nothing to load
        """Load the model of a score that has one, so that what is wrong with it is told before other work is done.

        Raises:
            ResourceNotFound: there is no such folder.
            CheckpointError: a checkpoint cannot be had.
            MissingDependency: a library is not installed.
        """

    def share(self, value: float) -> float:
        """A value of this score on the scale from 0 to 1."""
        return (value - self.least) / (self.most - self.least)

    def _check(self, value: object, kind: str) -> None:
        if not isinstance(value, Image.Image if kind == "image" else str):
            compared = f"values of kind {kind}" if not self.against else f"an {self.kind} with a {self.against}"
            raise TypeError(f"{self.name} compares {compared}, not {type(value).__name__}")

    # What follows is given values whose kinds were checked; each score names the classes of its own.

    def _compare_many(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        """The scores of values of the right kinds; one pair after the other where a score does not say."""
        return [self._compare(output, expected) for output, expected in pairs]

    @abstractmethod
    def _compare(self, output: Any, expected: Any) -> float:
        """The score of two values of the right kind."""

    def __repr__(self) -> str:
        compared = f"{self.kind} against {self.against}" if self.against else self.kind
        return f"<{self.name}: {compared}, {self.least:g} to {self.most:g}{' ' + self.unit if self.unit else ''}>"
