"""In which order the steps of a plan may be carried out, and when, by the rules that the plan was made under."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from formal_llm.automata import PDA, Lookahead, Source
from formal_llm.automata.languages.prefixes import ConfigurationSet, ConfigurationSets
from formal_llm.automata.models.quantities import clock_text
from formal_llm.automata.models.timetable import Timetable
from formal_llm.errors import ToolError

#: How many (what is done, where the rules are) are followed to decide whether each order of some calls keeps the rules.
_MOST_PLACES = 2_000


class StepOrder:
    """Decides which neighbouring steps of a plan may be carried out side by side.

    They may if *every* order of them in which each step comes after those whose results it takes keeps the rules.
    Limits on counts and sums hold in each order or in none. Over a grammar of nested calls the grammar itself says
    only which result goes where, so that the constraints alone are asked; elsewhere the whole automaton is.

    Args:
        rules: the rules; None where they are not known: then no two steps are carried out side by side.
        names: the terminals of the plan in the order in which the steps are carried out.
        nested: whether the plan is a nesting of calls.
    """

    def __init__(self, rules: Source | None, names: Sequence[str], *, nested: bool) -> None:
        self._names = names
        self._backward = isinstance(rules, PDA) and rules.order == "prefix"
        self._sets: list[ConfigurationSets] | None = None
        if not isinstance(rules, PDA) or rules.times:
            return
        asked = rules.factors[1:] if nested else (rules.without_limits,)
        self._sets = [ConfigurationSets(Lookahead(one)) for one in asked]

    def find_groups(self, may_share: Sequence[bool], needs: Sequence[Collection[int]]) -> list[range]:
        """Return the steps in groups: those of a group may be carried out side by side, one group after the other.

        Args:
            may_share: for each step whether it may be carried out side by side with others at all.
            needs: for each step the steps whose results it takes.
        """
        groups: list[range] = []
        for place in range(len(self._names)):
            last = groups[-1] if groups else range(0)
            wider = range(last.start, place + 1)
            if last and all(may_share[one] for one in wider) and self._keeps_each_order(wider, needs):
                groups[-1] = wider
            else:
                groups.append(range(place, place + 1))
        return groups

    def _keeps_each_order(self, group: range, needs: Sequence[Collection[int]]) -> bool:
        return self._sets is not None and all(self._keeps(sets, group, needs) for sets in self._sets)

    def _keeps(self, sets: ConfigurationSets, group: range, needs: Sequence[Collection[int]]) -> bool:
        """Whether the rules allow each order of the steps of a group, where the other steps stay."""
        before, after = self._names[: group.start], self._names[group.stop :]
        if self._backward:  # the word begins with the last step: the steps that take a result come before it
            before, after = after[::-1], before[::-1]
        blocked = {
            one: {other for other in group if (one in needs[other] if self._backward else other in needs[one])}
            for one in group
        }
        todo: list[tuple[frozenset[int], ConfigurationSet]] = [(frozenset(), sets.after_word(tuple(before)))]
        seen: dict[tuple[frozenset[int], int], ConfigurationSet] = {}  # which keeps them, so that ids are theirs
        while todo:
            done, at = todo.pop()
            # Equal sets of configurations are the same object.
            if (done, id(at)) in seen:
                continue
            seen[done, id(at)] = at
            if at.is_viable is not True or len(seen) > _MOST_PLACES:
                return False  # forbidden, or not decided: then the plan's own order is kept
            if len(done) == len(group):
                for name in after:
                    at = at.after_terminal(name)
                if not at.may_stop:
                    return False
                continue
            todo += [
                (done | {one}, at.after_terminal(self._names[one]))
                for one in group
                if one not in done and blocked[one] <= done
            ]
        return True


class Clock(Protocol):
    """The time by which gaps and windows are kept; tests and simulations set their own."""

    def now(self) -> float:
        """Return the seconds since some midnight."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed."""
        ...


class SystemClock:
    """The clock of this machine, in its time zone; as it is when it is made, so that an hour stays an hour."""

    def __init__(self) -> None:
        self._offset = time.localtime().tm_gmtoff

    def now(self) -> float:
        """Return the seconds since a midnight."""
        return time.time() + self._offset

    async def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed."""
        await asyncio.sleep(seconds)


class Timekeeper:
    """Waits until the rules allow a step to begin, by the times at which the steps before it really ended.

    Args:
        times: the timetable of the rules.
        seconds: how long each step takes by the rules.
    """

    def __init__(self, times: Timetable, seconds: Mapping[str, int], clock: Clock) -> None:
        self._times = times
        self._seconds = seconds
        self._clock = clock
        self._midnight = clock.now() // 86_400 * 86_400
        self._ends: dict[str, float] = {}

    async def await_begin(self, name: str) -> None:
        """Return when a step may begin.

        Raises:
            ToolError: it may not begin any more; the rule is named. Its reason is ``late``.
        """
        while (wait := self._find_begin(name) - self._read_clock()) > 0:
            await self._clock.sleep(wait)

    def note_end(self, name: str) -> None:
        """Take note that a step has ended.

        Raises:
            ToolError: it ended later than a rule allows.
        """
        self._ends[name] = now = self._read_clock()
        for rule, spans in self._list_spans(name):
            if all(now > last for _, last in spans):
                raise _late(name, f"ended at {clock_text(int(now))}", rule)

    def assume_end(self, name: str) -> None:
        """Take note that a step has ended some time before now: gaps after it are counted from now."""
        self._ends[name] = self._read_clock()

    def _read_clock(self) -> float:
        """Return the seconds since the midnight before the plan began."""
        return self._clock.now() - self._midnight

    def _find_begin(self, name: str) -> float:
        """Return the earliest time at which a step may begin, from now on."""
        begin = now = self._read_clock()
        for rule in self._times.gaps:
            if name in rule.after:
                begin = max([begin, *(self._ends[one] + rule.seconds for one in rule.before if one in self._ends)])
        takes = self._seconds.get(name, 0)
        again = True
        while again:  # each rule may move the beginning on, into a span that another rule does not allow
            again = False
            for bound, spans in self._list_spans(name):
                found = [max(begin, first) for first, last in spans if max(begin, first) + takes <= last]
                if not found:
                    raise _late(name, f"cannot begin any more at {clock_text(int(now))}", bound)
                begin, again = min(found), again or min(found) > begin
        return begin

    def _list_spans(self, name: str) -> Iterable[tuple[object, list[tuple[int, int]]]]:
        clock = self._times.clock
        if clock is not None:
            yield clock, [clock.span.edges]
        for window in self._times.windows:
            if window.terminal == name:
                yield window, [span.edges for span in window.spans]


def _late(name: str, what: str, rule: object) -> ToolError:
    return ToolError(name, f"{what}: {rule}", reason="late")
