"""What making a plan took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from formal_llm.automata.lookahead.verdicts import BITS, KINDS
from formal_llm.llms.usage import TokenUsage

_FIELD = (1 << BITS) - 1
_PLACES = tuple(BITS * place for place in range(len(KINDS)))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How many options, offered or left out, were decided by what.

    Attributes:
        filter: without a search.
        search: by the search.
        linear: by a linear argument.
        program: by an integer program (the extra ``solver``).
        unknown: not decided in the time or the states that a question may take, and offered.
    """

    filter: int = 0
    search: int = 0
    linear: int = 0
    program: int = 0
    unknown: int = 0

    def __add__(self, other: Verdicts) -> Verdicts:
        """Both together."""
        return Verdicts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @classmethod
    def unpack(cls, packed: int) -> Verdicts:
        """The table of a sum of :data:`~formal_llm.automata.lookahead.verdicts.TALLY`."""
        return cls(*(packed >> place & _FIELD for place in _PLACES))

    def pack(self) -> int:
        """The table as :meth:`unpack` takes it."""
        return sum(getattr(self, field.name) << BITS * place for place, field in enumerate(fields(self)))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a plan took.

    Attributes:
        questions: questions answered.
        forced: choices that the grammar leaves open and the rules do not: taken without a question.
        backtracks: dead ends from which the walk went back.
        wasted: answers that going back undid.
        requests, input_tokens, output_tokens, cached_tokens, cache_write_tokens: as the answerers reported them (see
                :class:`TokenUsage`).
        seconds: wall-clock time from the start of the walk to its end.
        cost: what the tokens cost, in the currency of the prices; None where no prices are given.
        verdicts: what decided which options were offered, all in all; a mapping of its counts is taken as well.
        drafts: drafts of the plan that the answerer wrote; they are no questions, their tokens are in the counts above.
        drafted: choices that were taken from drafts, without a question.
    """

    questions: int = 0
    forced: int = 0
    backtracks: int = 0
    wasted: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None
    verdicts: Verdicts = Verdicts()
    drafts: int = 0
    drafted: int = 0

    def __post_init__(self) -> None:
        if type(self.verdicts) is not Verdicts and isinstance(self.verdicts, Mapping):  # as it is read from JSON
            object.__setattr__(self, "verdicts", Verdicts(**self.verdicts))

    def __add__(self, other: Usage) -> Usage:
        """Both together; the cost is that of those that have one."""
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        names = [field.name for field in fields(self) if field.name != "cost"]
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**summed, cost=sum(costs) if costs else None)

    @property
    def token_usage(self) -> TokenUsage:
        """What the answers took."""
        return TokenUsage(
            self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens
        )
