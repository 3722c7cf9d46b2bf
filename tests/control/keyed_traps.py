"""Random guard rules, some of which hold for each key, and a judge of traps by a search through all states."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from benchmarks.guard_traps import Judge, Rule, RuleSet, State
from formal_llm.guard import Call, Guard, GuardRules

#: The most states that one question may look at, and the most keys of a walk.
_MOST_STATES, _MOST_KEYS = 8_000, 5
#: Of some keys, how many are in which state of the rules for each key; and the state of the other rules.
KeyedState = tuple[State, tuple[tuple[State, int], ...]]


class KeyedJudge:
    """Rules over all calls together with rules for each key, decided by a search through all states.

    Keys that did not come yet are alike, and so are keys in the same state: a state counts them. As many new keys may
    come as the rules over all calls could ever need.

    Args:
        whole: the rules over all calls.
        each: the rules for each key.
    """

    def __init__(self, whole: RuleSet, each: RuleSet) -> None:
        self.whole, self.each = Judge(whole), Judge(each)
        self.tools = whole.names
        self.keyed = {name for rule in each.rules for name in rule[1:3] if name}
        self.start: KeyedState = (self.whole.start, ())
        self.new_keys = 1 + sum(count for kind, _, _, count in whole.rules if kind in ("at least", "before"))
        self._known: dict[tuple[KeyedState, int], bool] = {}

    def step(self, state: KeyedState, tool: str, key: State | None) -> KeyedState | None:
        """The state after a call for some key in a state, None for a new one; None where a rule forbids it."""
        whole = self.whole.step(state[0], tool)
        if whole is None or tool not in self.keyed:
            return None if whole is None else (whole, state[1])
        after = self.each.step(self.each.start if key is None else key, tool)
        if after is None:
            return None
        count = Counter(dict(state[1]))
        if key is not None:
            count[key] -= 1
        count[after] += 1
        return whole, tuple(sorted((one, number) for one, number in count.items() if number))

    def met(self, state: KeyedState) -> bool:
        """Whether the run may end here."""
        return self.whole.met(state[0]) and all(self.each.met(key) for key, _ in state[1])

    def alive(self, start: KeyedState) -> bool | None:
        """Whether a state in which the run may end can be reached; None where there are too many states."""
        first = (start, self.new_keys)
        if first in self._known:
            return self._known[first]
        seen, todo = {first}, [first]
        while todo:
            state, new = todo.pop()
            if self.met(state) or self._known.get((state, new)):
                self._known[first] = True
                return True
            if len(seen) > _MOST_STATES:
                return None
            for tool in self.tools:
                for key in (*(key for key, _ in state[1]), *((None,) if new else ())):
                    after = self.step(state, tool, key)
                    one = None if after is None else (after, new - (key is None))
                    if one is not None and one not in seen and self._known.get(one) is not False:
                        seen.add(one)
                        todo.append(one)
        self._known.update(dict.fromkeys(seen, False))
        return False


def make_keyed_rules(rng: random.Random) -> tuple[RuleSet, RuleSet]:
    """Random rules over all calls, and for each key; there are traps in most of them."""
    tools = "abcd"[: rng.randint(2, 4)]

    def draw(kinds: Sequence[str], most: int) -> Rule:
        one, other = rng.sample(tools, 2)
        kind = rng.choice(kinds)
        return (
            kind,
            one,
            "" if kind.startswith("at ") else other,
            rng.randint(1, most) if kind[:2] in ("at", "be") else 1,
        )

    whole = [draw(("at most", "at most", "at least", "before", "never after"), 3) for _ in range(rng.randint(1, 3))]
    each = [draw(("after each", "after each", "before", "before each", "at most", "at least", "never after"), 2)
            for _ in range(rng.randint(1, 3))]  # fmt: skip
    costs = {tool: rng.randint(0, 3) for tool in tools} if rng.random() < 0.3 else {}
    names = " ".join(tools)
    return RuleSet("", names, tuple(whole), costs, rng.randint(2, 8) if costs else 0), RuleSet("", names, tuple(each))


def write_keyed_rules(whole: RuleSet, each: RuleSet) -> str:
    """The rules as a file for a guard."""
    lines = [f"{tool}: {tool} with key = key, cost = {whole.costs.get(tool, 0)}" for tool in whole.names]
    for rules, keys in ((whole, ""), (each, " for each key")):
        for place, (kind, one, other, count) in enumerate(rules.rules):
            body = {
                "before": f"{count} {one} before {other}", "before each": f"{count} {one} before each {other}",
                "after each": f"{one} after each {other}", "never after": f"never {one} after {other}",
            }.get(kind, f"{kind} {count} {one}")  # fmt: skip
            lines.append(f"rule {'e' if keys else 'w'}{place}{keys}: {body}")
    if whole.costs:
        lines.append(f"rule spent: budget cost <= {whole.budget}")
    return "\n".join(lines) + "\n"


@dataclass
class TrapCount:
    """What was counted: decisions, those that are not certain, wrong ones, and calls into a trap, and those allowed."""

    checks: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)
    traps: int = 0
    entered: int = 0

    def walk(self, text: str, judge: KeyedJudge, rng: random.Random, steps: int, unsure: str) -> None:
        """Follow calls that a guard allows, and ask it about all others on the way; a trap that is entered ends it."""
        guard = Guard(GuardRules.from_string(text), judge.tools, unsure=unsure)  # type: ignore[arg-type]
        if judge.alive(judge.start) is not True:
            return
        state, place, keys = guard.start(), judge.start, dict[int, State]()
        for _ in range(steps):
            allowed = []
            for tool in judge.tools:
                for key in [*keys, *([len(keys)] if len(keys) < _MOST_KEYS else [])]:
                    call = Call(tool, {"key": key})
                    decision = state.check(call)
                    after = judge.step(place, tool, keys.get(key))
                    alive = False if after is None else judge.alive(after)
                    if alive is None:
                        continue
                    self.checks += 1
                    self.unknown += not decision.certain
                    self.traps += after is not None and not alive
                    self.entered += after is not None and not alive and decision.runs
                    if decision.certain and decision.runs is not alive:
                        self.wrong.append(f"{text}{state.history} {call}: {decision.action}, alive {alive}")
                    if decision.runs and after is not None:
                        allowed.append((call, after, tool, key, alive))
            if not allowed:
                return
            call, place, tool, key, alive = rng.choice(allowed)
            if not alive:
                return
            state = state.after(call)
            if tool in judge.keyed:
                keys[key] = cast("State", judge.each.step(keys.get(key, judge.each.start), tool))


def main() -> None:
    """Walk guards of many random rule sets; run: ``python -m tests.control.keyed_traps --sets 400 --walks 12``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sets", type=int, default=100, help="how many rule sets")
    parser.add_argument("--walks", type=int, default=4, help="walks of each")
    given = parser.parse_args()
    count = TrapCount()
    for seed in range(given.sets):
        rng = random.Random(seed)
        words, events = make_keyed_rules(rng)
        judge = KeyedJudge(words, events)
        for _ in range(given.walks):
            count.walk(write_keyed_rules(words, events), judge, rng, 10, "allow")
    print(f"{count.checks:,} checks, {count.unknown} not certain, {len(count.wrong)} wrong; "
          f"{count.entered} of {count.traps} traps entered")  # fmt: skip


if __name__ == "__main__":
    main()
