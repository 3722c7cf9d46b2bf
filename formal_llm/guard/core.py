"""The static part of a guard: the compiled rules, the possible events, and the supervisors that look ahead."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from formal_llm.authored.files import read_text
from formal_llm.automata.lookahead.verdicts import Guarantee
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.control.component import ComponentNode, Position, project_node
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.search import ViabilitySearch
from formal_llm.control.supervisor import Supervisor, describe_way
from formal_llm.errors import NotationError
from formal_llm.guard.events import Call
from formal_llm.guard.position import PositionTracker
from formal_llm.guard.rules.compiled import compile_rules
from formal_llm.guard.rules.labels import Labeller
from formal_llm.guard.rules.possible_events import build_plant
from formal_llm.guard.rules.reading import read_rules
from formal_llm.guard.rules.rule_set import SEVERITIES, UNSURE, GuardRuleSet, Letter, Severity, Unsure

Trace = tuple[PlantSymbol, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is probably not meant.

    Attributes:
        kind: ``"empty"``: nothing keeps the rules. ``"never"``: an event that cannot come.
        name: the event; empty where it is about no single one.
        message: a sentence for a person.
        trace: the shortest trace that shows it.
        rules: the rules that are to blame.
        by_environment: whether an event that the agent does not decide breaks the rules.
    """

    kind: Literal["empty", "never"]
    name: str
    message: str
    trace: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    by_environment: bool = False

    def __str__(self) -> str:
        return self.message


def find_problems(
    supervisor: Supervisor, positions: PositionTracker, plant: Plant, letters: Sequence[Letter]
) -> tuple[Finding, ...]:
    """Find problems of rules.

    Args:
        supervisor: the supervisor of the rules that can stop a call.
        positions: the tracker of the states of the rules.
        plant: the possible events.
        letters: the letters.

    Returns:
        Rules that cannot be kept together, and letters that no event can have.
    """
    possible = {name for symbol in plant.symbols for name in symbol.letters}
    findings = [
        Finding("never", letter.name, f"{letter.name} can never come: no event is {letter}")
        for letter in letters
        if letter.name not in possible
    ]
    start = positions.start
    for search in supervisor.searches:
        node = project_node(start, search.component)
        if search.is_viable(node) is False:
            names = tuple(
                dict.fromkeys(positions.parts[place].rule.name for place in supervisor.find_minimal_conflict(start))
            )
            findings.append(_describe_conflict(search, node, names))
    return tuple(findings)


def _describe_conflict(search: ViabilitySearch, node: ComponentNode, names: tuple[str, ...]) -> Finding:
    rule_list = "; ".join(names)
    if search.has_continuation(node) is False:
        return Finding("empty", "", f"nothing keeps these rules together: {rule_list}", (), names)
    trace = describe_way(_find_uncontrollable_trace(search, node))
    after = f", for instance {', then '.join(trace)}" if trace else ""
    message = f"these rules cannot be kept whatever tools return and users say{after}: {rule_list}"
    return Finding("empty", "", message, trace, names, by_environment=True)


def _find_uncontrollable_trace(search: ViabilitySearch, start: ComponentNode) -> Trace:
    """Find the shortest trace after which an event that the agent does not control breaks the rules."""
    todo: deque[tuple[ComponentNode, Trace]] = deque([(start, ())])
    seen = {start}
    while todo and len(seen) < search.max_states:
        node, trace = todo.popleft()
        for step in search.component.steps:
            for after in search.component.find_successors(node, step):
                now = (*trace, step.symbol)
                if not step.symbol.is_controllable and (after is None or search.has_continuation(after) is False):
                    return now
                if after is not None and after not in seen and search.has_continuation(after) is not False:
                    seen.add(after)
                    todo.append((after, now))
    return ()


class GuardRules:
    """Compiled rules for tool calls, from which guards are built.

    Args:
        rules: letters and rules.
        file: the file name for messages.

    Raises:
        NotationError: a rule in another notation cannot be read, or names something that is not a letter.

    ``str(rules)`` prints them; reading the text back gives equal rules.
    """

    def __init__(self, rules: GuardRuleSet, file: str | None = None) -> None:
        self.rule_set = rules
        self.parts, self.timed = compile_rules(rules, file)
        self.labeller = Labeller(rules.letters, rules.others)
        #: Whether the rules depend on the times of events.
        self.needs_time = bool(self.timed) or re.search(r"\bnow\b", str(rules)) is not None

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None, folder: str = "") -> GuardRules:
        """Read rules from a text; ``folder`` contains the files that they name.

        Raises:
            NotationError: with line, column, a caret, the expected tokens and the nearest name.
        """
        return cls(read_rules(text, file, folder), file)

    @classmethod
    def from_file(cls, path: str | Path) -> GuardRules:
        """Read rules from a ``.guard`` file; files that they name are looked up in its folder.

        Raises:
            NotationError: as for :meth:`from_string`, or the file cannot be read.
        """
        return cls.from_string(read_text(path, NotationError), file=str(path), folder=str(Path(path).parent))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules."""
        return tuple(rule.name for rule in self.rule_set.rules)

    def check(self, tools: Collection[str] = (), guarantee: Guarantee = "some") -> tuple[Finding, ...]:
        """Find problems of the rules before any run: conflicts, letters that can never occur.

        Args:
            tools: the available tools; empty if they are unknown.
            guarantee: the guarantee that a guard has to provide.
        """
        core = GuardCore(self, tools, guarantee)
        strict = [
            supervisor for severity, supervisor in core.list_supervisors(frozenset()) if severity in ("block", "ask")
        ]
        if not strict:
            return ()
        return find_problems(strict[-1], core.positions, core.plant, self.rule_set.letters)

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
    """The data that all states of one guard share; for the arguments see :class:`formal_llm.guard.Guard`."""

    def __init__(
        self,
        rules: GuardRules,
        tools: Collection[str] = (),
        guarantee: Guarantee = "some",
        *,
        unsure: Unsure | None = None,
        clock: Callable[[], datetime] = _get_current_time,
        max_states: int = 2_000,
    ) -> None:
        if guarantee not in ("some", "whatever"):
            raise ValueError(f"a guarantee is 'some' or 'whatever', not {guarantee!r}")
        if unsure is not None and unsure not in UNSURE:
            raise ValueError(f"unsure is one of {', '.join(UNSURE)}, not {unsure!r}")
        if isinstance(tools, str):
            raise TypeError("tools are several names; not one text")
        self.rules = rules
        self.tools = tuple(dict.fromkeys(tools))
        self.guarantee: Guarantee = guarantee
        self.unsure: Unsure = unsure or rules.rule_set.unsure or "ask"
        self.clock = clock
        self.max_states = max_states
        self.plant = build_plant(rules.labeller, self.tools)
        self.positions = PositionTracker(
            rules.parts, rules.timed, lambda tool: [name for name, _ in rules.labeller.find_patterns("result", tool)]
        )
        self._tiers: dict[frozenset[int], tuple[tuple[Severity, Supervisor], ...]] = {}
        self._supervisors: dict[frozenset[int], Supervisor] = {}

    def list_supervisors(self, lost: frozenset[int]) -> tuple[tuple[Severity, Supervisor], ...]:
        """List for each severity in use, the strictest first, the supervisor of all rules that are at least as strict.

        Lost rules are ignored: past events cannot be undone, and the others can still be kept.
        """
        supervisors = self._tiers.get(lost)
        if supervisors is None:
            numbers: list[int] = []
            tiers = []
            for severity in SEVERITIES:
                places = [place for place, part in enumerate(self.rules.parts) if part.rule.severity == severity]
                numbers += [place for place in places if place not in lost]
                if places:
                    tiers.append((severity, self._get_supervisor(frozenset(numbers))))
            supervisors = self._tiers[lost] = tuple(tiers)
        return supervisors

    def _get_supervisor(self, numbers: frozenset[int]) -> Supervisor:
        supervisor = self._supervisors.get(numbers)
        if supervisor is None:
            supervisor = Supervisor(numbers, self.positions.parts, self.plant, self.guarantee, self.max_states)
            self._supervisors[numbers] = supervisor
        return supervisor

    @cached_property
    def fingerprint(self) -> str:
        """A short identifier shared by guards with equal rules, tools and guarantee."""
        return make_fingerprint([str(self.rules), self.tools, self.guarantee])

    def describe_letter(self, symbol: PlantSymbol, letter: str) -> str:
        """Describe an event by the first pattern of a letter that it may match, without its fields."""
        patterns = self.rules.labeller.find_patterns(symbol.kind, symbol.tool)
        return str(replace(next(pattern for name, pattern in patterns if name == letter), fields=()))

    def find_closed_tools(self, position: Position, lost: frozenset[int]) -> frozenset[str]:
        """Find the tools of which no call is allowed at a position."""
        strict = next((supervisor for severity, supervisor in self.list_supervisors(lost) if severity == "block"), None)
        return frozenset() if strict is None else strict.find_closed_tools(position, unsure=self.unsure == "block")

    def find_allowed_tools(
        self, position: Position, lost: frozenset[int], at: datetime | None = None
    ) -> tuple[str, ...]:
        """Find the tools that may be called, out of the specified tools, or else of those that the rules name.

        Rules about time count if it is given.
        """
        closed = self.find_closed_tools(position, lost)
        return tuple(
            tool
            for tool in self.tools or self.plant.tools
            if tool not in closed and not (self.rules.timed and at and self._must_wait(position, Call(tool, at=at)))
        )

    def _must_wait(self, position: Position, call: Call) -> bool:
        """Return whether a rule about time closes the tool of a call, whatever its arguments."""
        movement = self.positions.apply_event(position, call, self.rules.labeller.label_event(call).letters)
        broken = [self.rules.timed[one.place].rule for one in movement.refused if one.timed and not one.late]
        return any(rule.severity in ("block", "ask") and not rule.keys for rule in broken)
