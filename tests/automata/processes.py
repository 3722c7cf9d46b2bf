"""Random processes as expressions, their plans by brute force, and the Mermaid that a person would draw for each.

The plans are worked out from the expression alone, so the meaning of a chart is checked by what it was drawn for.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hypothesis import strategies as st

Word = tuple[str, ...]
#: Longer plans are not looked at.
LONGEST = 5


@dataclass(frozen=True)
class Do:
    """One step."""


@dataclass(frozen=True)
class Then:
    """Parts one after the other."""

    parts: tuple[Process, ...]


@dataclass(frozen=True)
class Either:
    """One of the parts; ``asked``: a decision with texts, or else arrows without any, out of what comes before."""

    parts: tuple[Process, ...]
    asked: bool


@dataclass(frozen=True)
class Both:
    """All parts, in any order."""

    parts: tuple[Process, ...]


@dataclass(frozen=True)
class Again:
    """A part once or more often."""

    part: Process


Process = Do | Then | Either | Both | Again


def processes(depth: int = 2) -> st.SearchStrategy[Process]:
    """Processes, not too large ones."""
    if depth == 0:
        return st.just(Do())
    inner = processes(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.just(Do()),
        several.map(Then),
        st.builds(Either, several, st.booleans()),
        several.map(Both),
        inner.map(Again),
    )


@dataclass
class Drawing:
    """A process as Mermaid; each step has a name of its own, in the order in which they stand."""

    lines: list[str] = field(default_factory=lambda: ["flowchart TD"])
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    names: dict[int, str] = field(default_factory=dict)

    def new(self, shape: str, letter: str = "x") -> str:
        """A new node that is no step."""
        name = f"{letter}{next(self.numbers)}"
        self.lines.append(f"{name}{shape}")
        return name

    def arrow(self, source: str, target: str, text: str = "") -> None:
        self.lines.append(f"{source} -->{f'|{text}|' if text else ''} {target}")

    def draw(self, what: Process) -> tuple[str, str, set[Word]]:
        """Where a process is entered, from where it is left, and its plans."""
        match what:
            case Do():
                name = self.new("[Do it]", "s")
                return name, name, {(name,)}
            case Then(parts):
                drawn = [self.draw(part) for part in parts]
                for (_, left, _), (entered, _, _) in itertools.pairwise(drawn):
                    self.arrow(left, entered)
                return drawn[0][0], drawn[-1][1], chained([plans for *_, plans in drawn])
            case Either(parts, asked):
                first, last = self.new("{Which?}" if asked else "(( ))"), self.new("(( ))")
                plans: set[Word] = set()
                for number, part in enumerate(parts):
                    entered, left, made = self.draw(part)
                    self.arrow(first, entered, f"answer {number}" if asked else "")
                    self.arrow(left, last)
                    plans |= made
                return first, last, plans
            case Both(parts):
                drawn = [self.draw(part) for part in parts]
                first, last = self.new("(( ))"), self.new("(( ))")
                self.arrow(first, " & ".join(entered for entered, *_ in drawn))
                self.arrow(" & ".join(left for _, left, _ in drawn), last)
                return first, last, shuffled([made for *_, made in drawn])
            case Again(part):
                entered, left, once = self.draw(part)
                first, more = self.new("(( ))"), self.new("{Again?}")
                self.arrow(first, entered)
                self.arrow(left, more)
                self.arrow(more, first, "yes")
                last = self.new("(( ))")
                self.arrow(more, last, "no")
                plans = set(once)
                for _ in range(LONGEST):
                    plans |= chained([plans, once])
                return first, last, plans


def drawn(what: Process) -> tuple[str, set[Word]]:
    """A process as Mermaid, and its plans of up to :data:`LONGEST` steps."""
    drawing = Drawing()
    entered, left, plans = drawing.draw(what)
    drawing.arrow(drawing.new("([Start])"), entered)
    drawing.arrow(left, drawing.new("([End])"))
    return "\n".join(drawing.lines), plans


def chained(parts: list[set[Word]]) -> set[Word]:
    """A word of each part, one after the other."""
    found: set[Word] = {()}
    for part in parts:
        found = {one + other for one in found for other in part if len(one + other) <= LONGEST}
    return found


def shuffled(parts: list[set[Word]]) -> set[Word]:
    """A word of each part, merged in all ways."""
    found: set[Word] = {()}
    for part in parts:
        pairs = [(one, other) for one in found for other in part if len(one + other) <= LONGEST]
        found = {merged for one, other in pairs for merged in merges(one, other)}
    return found


def merges(one: Word, other: Word) -> set[Word]:
    """All ways to merge two words."""
    found = set()
    for places in itertools.combinations(range(len(one) + len(other)), len(one)):
        rest, letters = iter(other), iter(one)
        found.add(tuple(next(letters) if n in places else next(rest) for n in range(len(one) + len(other))))
    return found
