"""What a guard knows before any run: the rules, compiled, what can happen, and what looks ahead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from formal_llm.agents.findings import Finding
from formal_llm.authored.files import read_text
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.control.component import Position
from formal_llm.control.search import Guarantee
from formal_llm.control.supervisor import Supervisor
from formal_llm.errors import NotationError
from formal_llm.guard.checks import find_problems
from formal_llm.guard.position import PositionTracker
from formal_llm.guard.rules.compiled import compile_rules
from formal_llm.guard.rules.labels import Labeller
from formal_llm.guard.rules.possible_events import build_plant
from formal_llm.guard.rules.reading import read_rules
from formal_llm.guard.rules.rule_set import SEVERITIES, GuardRuleSet, Severity


class GuardRules:
    """Rules for tool calls, compiled; a guard is made of them.

    Args:
        rules: letters and rules.
        file: where they are from, for messages.

    Raises:
        NotationError: a rule in another notation cannot be read, or names what is no letter.

    ``str(rules)`` prints them; what is read back is equal.
    """

    def __init__(self, rules: GuardRuleSet, file: str | None = None) -> None:
        self.rule_set = rules
        self.parts, self.timed = compile_rules(rules, file)
        self.labeller = Labeller(rules.letters)
        #: Whether events need a time.
        self.needs_time = bool(self.timed) or "now" in str(rules)

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None, folder: str = "") -> GuardRules:
        """The rules that a text writes; ``folder`` is where the files are that they name.

        Raises:
            NotationError: with line, column, a caret, what was expected and the nearest name.
        """
        return cls(read_rules(text, file, folder), file)

    @classmethod
    def from_file(cls, path: str | Path) -> GuardRules:
        """The rules in a ``.guard`` file; files that they name are looked for beside it.

        Raises:
            NotationError: as :meth:`from_string`, and where the file cannot be read.
        """
        return cls.from_string(read_text(path, NotationError), file=str(path), folder=str(Path(path).parent))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules."""
        return tuple(rule.name for rule in self.rule_set.rules)

    def check(
        self, tools: Collection[str] = (), guarantee: Guarantee = "some", *, max_places: int = 2_000
    ) -> tuple[Finding, ...]:
        """What is wrong with the rules, told before any run: conflicts, traps, what can never come.

        Args:
            tools: the tools that there are; empty where that is not known.
            guarantee: what a guard is to promise.
            max_places: how many places are looked at, the nearest to the start first.
        """
        core = GuardCore(self, tools, guarantee)
        strict = [
            supervisor for severity, supervisor in core.list_supervisors(frozenset()) if severity in ("block", "ask")
        ]
        if not strict:
            return ()
        return find_problems(strict[-1], core.positions, core.plant, self.rule_set.letters, max_places)

    def __str__(self) -> str:
        return str(self.rule_set)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardRules) and self.rule_set == other.rule_set

    def __hash__(self) -> int:
        return hash(str(self.rule_set))

    def __repr__(self) -> str:
        return f"<GuardRules: {len(self.rule_set.letters)} letters, {len(self.rule_set.rules)} rules>"


def _get_current_time() -> datetime:
    return datetime.now(UTC)


class GuardCore:
    """What all states of one guard share; as of :class:`formal_llm.guard.Guard`."""

    def __init__(
        self,
        rules: GuardRules,
        tools: Collection[str] = (),
        guarantee: Guarantee = "some",
        *,
        clock: Callable[[], datetime] = _get_current_time,
        max_states: int = 2_000,
    ) -> None:
        if guarantee not in ("some", "whatever"):
            raise ValueError(f"a guarantee is 'some' or 'whatever', not {guarantee!r}")
        if isinstance(tools, str):
            raise TypeError("tools are several names; not one text")
        self.rules = rules
        self.tools = tuple(dict.fromkeys(tools))
        self.guarantee: Guarantee = guarantee
        self.clock = clock
        self.max_states = max_states
        self.plant = build_plant(rules.labeller, self.tools)
        self.positions = PositionTracker(
            rules.parts, rules.timed, lambda tool: bool(rules.labeller.find_patterns("result", tool))
        )
        self._tiers: dict[frozenset[int], tuple[tuple[Severity, Supervisor], ...]] = {}
        self._supervisors: dict[frozenset[int], Supervisor] = {}

    def list_supervisors(self, lost: frozenset[int]) -> tuple[tuple[Severity, Supervisor], ...]:
        """For each severity that rules have, the strictest first, what looks ahead for the rules that are as strict.

        Rules that are lost are left out: what happened cannot be undone, and the others still can be kept.
        """
        found = self._tiers.get(lost)
        if found is None:
            numbers: list[int] = []
            made = []
            for severity in SEVERITIES:
                new = [place for place, part in enumerate(self.rules.parts) if part.rule.severity == severity]
                numbers += [place for place in new if place not in lost]
                if new:
                    made.append((severity, self._get_supervisor(frozenset(numbers))))
            found = self._tiers[lost] = tuple(made)
        return found

    def _get_supervisor(self, numbers: frozenset[int]) -> Supervisor:
        found = self._supervisors.get(numbers)
        if found is None:
            found = Supervisor(numbers, self.positions.parts, self.plant, self.guarantee, self.max_states)
            self._supervisors[numbers] = found
        return found

    @cached_property
    def fingerprint(self) -> str:
        """A short name that guards with equal rules, tools and guarantee share."""
        return make_fingerprint([str(self.rules), self.tools, self.guarantee])

    @cached_property
    def letter_texts(self) -> Mapping[str, str]:
        """Each letter as its first pattern is written, without the values that it gives."""
        return {letter.name: str(replace(letter.patterns[0], fields=())) for letter in self.rules.rule_set.letters}

    def find_closed_tools(self, position: Position, lost: frozenset[int]) -> frozenset[str]:
        """The tools of which no call is allowed from here."""
        strict = next((supervisor for severity, supervisor in self.list_supervisors(lost) if severity == "block"), None)
        return frozenset() if strict is None else strict.find_closed_tools(position)

    def find_allowed_tools(self, position: Position, lost: frozenset[int]) -> tuple[str, ...]:
        """The tools that may be called from here: of those that were told, else of those that the rules name."""
        closed = self.find_closed_tools(position, lost)
        return tuple(tool for tool in self.tools or self.plant.tools if tool not in closed)
