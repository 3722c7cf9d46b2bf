"""What is wrong with rules for tool calls, told before any run: conflicts, traps, letters that can never come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from formal_llm.agents.findings import Finding
from formal_llm.control.component import ComponentNode, project_node
from formal_llm.control.machines import Letters
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.search import ViabilitySearch
from formal_llm.control.supervisor import Supervisor, describe_way
from formal_llm.guard.position import PositionTracker
from formal_llm.guard.rules.rule_set import Letter

Trace = tuple[PlantSymbol, ...]


def find_problems(
    supervisor: Supervisor, positions: PositionTracker, plant: Plant, letters: Sequence[Letter], max_places: int
) -> tuple[Finding, ...]:
    """What is wrong with rules.

    Args:
        supervisor: what looks ahead for the rules that stop a call.
        positions: where the rules stand.
        plant: what can happen.
        letters: the letters.
        max_places: how many places of rules that look at the same tools are looked at.

    Returns:
        Rules that nothing keeps together; of each event the shortest trap; letters that no event can have, and such
        that no run holds which keeps the rules.
    """
    possible = {name for symbol in plant.symbols for name in symbol.letters}
    found = [
        Finding("never", letter.name, f"{letter.name} can never come: no event is {letter}")
        for letter in letters
        if letter.name not in possible
    ]
    shown = {letter.name: letter.name for letter in letters}
    start = positions.start
    for lookout in supervisor.lookouts:
        node = project_node(start, lookout.component)
        if lookout.is_viable(node) is False:
            names = tuple(
                dict.fromkeys(positions.parts[place].rule.name for place in supervisor.find_minimal_conflict(start))
            )
            found.append(_describe_conflict(lookout, node, names, shown))
        else:
            found += _find_traps(lookout, node, shown, max_places)
    return tuple(found)


def _describe_conflict(
    lookout: ViabilitySearch, node: ComponentNode, names: tuple[str, ...], shown: Mapping[str, str]
) -> Finding:
    said = "; ".join(names)
    if lookout.has_continuation(node) is False:
        return Finding("empty", "", f"nothing keeps these rules together: {said}", (), (), names)
    trace = describe_way(_find_uncontrollable_trace(lookout, node), shown)
    after = f", for instance {', then '.join(trace)}" if trace else ""
    message = f"these rules cannot be kept whatever tools return and users say{after}: {said}"
    return Finding("empty", "", message, trace, (), names, by_environment=True)


def _find_uncontrollable_trace(lookout: ViabilitySearch, start: ComponentNode) -> Trace:
    """The shortest trace to where something that the agent does not decide breaks the rules."""
    todo: deque[tuple[ComponentNode, Trace]] = deque([(start, ())])
    seen = {start}
    while todo and len(seen) < lookout.max_states:
        node, trace = todo.popleft()
        for step in lookout.component.steps:
            for after in lookout.component.find_successors(node, step):
                now = (*trace, step.symbol)
                if not step.symbol.is_controllable and (after is None or lookout.has_continuation(after) is False):
                    return now
                if after is not None and after not in seen and lookout.has_continuation(after) is not False:
                    seen.add(after)
                    todo.append((after, now))
    return ()


def _find_traps(
    lookout: ViabilitySearch, start: ComponentNode, shown: Mapping[str, str], max_places: int
) -> Iterator[Finding]:
    component = lookout.component
    todo: deque[tuple[ComponentNode, Trace]] = deque([(start, ())])
    seen = {start}
    traps: dict[tuple[str, str, Letters], Trace] = {}
    come: set[str] = set()
    whole = True
    while todo:
        node, trace = todo.popleft()
        for step in component.steps:
            for after in component.find_successors(node, step):
                if after is None or step.symbol.doubtful:
                    continue
                now = (*trace, step.symbol)
                if lookout.is_viable(after) is False:
                    if _can_keep_separately(lookout, after):
                        traps.setdefault((step.symbol.kind, step.symbol.tool, step.symbol.letters), now)
                    continue
                come |= step.symbol.letters
                if after not in seen:
                    if len(seen) >= max_places:
                        whole = False
                        continue
                    seen.add(after)
                    todo.append((after, now))
    for trace in traps.values():
        yield _describe_trap(lookout, trace[-1], describe_way(trace, shown))
    if whole:
        doubtful = {name for step in component.steps if step.symbol.doubtful for name in step.symbol.letters}
        known = {name for step in component.steps for name in step.symbol.letters}
        for name in sorted(known - come - doubtful):
            yield Finding("never", name, f"{name} can never come: no run that keeps the rules holds it")
    else:
        yield Finding("not decided", "", f"only the {max_places} places nearest to the start were looked at for traps")


def _can_keep_separately(lookout: ViabilitySearch, node: ComponentNode) -> bool:
    """Whether each rule by itself can still be kept, so that none of them alone forbids what led here."""
    return lookout.component.distance_to_acceptance(node) is not None


def _describe_trap(lookout: ViabilitySearch, symbol: PlantSymbol, trace: tuple[str, ...]) -> Finding:
    names = tuple(dict.fromkeys(part.name for part in lookout.component.parts.values()))
    after = f"after {', '.join(trace[:-1])}" if trace[:-1] else "at the start"
    who = "" if symbol.is_controllable else ", which the agent does not decide,"
    message = (
        f"{after} {trace[-1]}{who} can come, and then these rules can no longer be kept together: {'; '.join(names)}"
    )
    return Finding("trap", trace[-1], message, trace, (), names, by_environment=not symbol.is_controllable)
