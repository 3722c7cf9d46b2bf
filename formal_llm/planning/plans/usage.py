"""The usage of a plan: questions, requests, tokens, time, cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from formal_llm.automata.lookahead.verdicts import BITS, KINDS
from formal_llm.llms.usage import TokenUsage

_FIELD = (1 << BITS) - 1
_PLACES = tuple(BITS * place for place in range(len(KINDS)))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The number of options, offered or left out, by the method that decided them.

    Attributes:
        filter: without a search.
        search: by the search.
        linear: by a linear argument.
        program: by an integer program (the extra ``solver``).
        unknown: undecided within the time or the states of a question, and therefore offered.
    """

    filter: int = 0
    search: int = 0
    linear: int = 0
    program: int = 0
    unknown: int = 0

    def __add__(self, other: Verdicts) -> Verdicts:
        """Return the sum of both."""
        return Verdicts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @classmethod
    def unpack(cls, packed: int) -> Verdicts:
        """Create the table from a sum of :data:`~formal_llm.automata.lookahead.verdicts.TALLY`."""
        return cls(*(packed >> place & _FIELD for place in _PLACES))

    def pack(self) -> int:
        """Pack the table for :meth:`unpack`."""
        return sum(getattr(self, field.name) << BITS * place for place, field in enumerate(fields(self)))


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used to make a plan.

    Attributes:
        questions: questions answered.
        forced: choices that the grammar leaves open but the rules decide, made without a question.
        backtracks: dead ends from which the walk went back.
        wasted: answers that were undone by going back.
        requests, input_tokens, output_tokens, cached_tokens, cache_write_tokens, estimated: as reported with the
                answers (see :class:`TokenUsage`).
        seconds: wall-clock time from the start of the walk to its end.
        cost: the cost of the tokens, in the currency of the prices; None without prices.
        verdicts: how many options were decided by what, in total; a mapping of the counts is accepted too.
        drafts: drafts of the plan that the LLM wrote; they are not questions, their tokens are counted above.
        drafted: choices taken from drafts, without a question.
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
    estimated: int = 0

    def __post_init__(self) -> None:
        if type(self.verdicts) is not Verdicts and isinstance(self.verdicts, Mapping):  # as it is read from JSON
            object.__setattr__(self, "verdicts", Verdicts(**self.verdicts))

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both; the cost is that of the parts that have one."""
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        names = [field.name for field in fields(self) if field.name != "cost"]
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**summed, cost=sum(costs) if costs else None)

    @property
    def uncertain(self) -> int:
        """How many options were offered although it was not decided whether a plan can be finished after them."""
        return self.verdicts.unknown

    @property
    def token_usage(self) -> TokenUsage:
        """The requests and tokens of the answers."""
        return TokenUsage(
            self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens,
            self.estimated,
        )  # fmt: skip
