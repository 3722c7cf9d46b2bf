"""Twenty rule sets with traps for guards of live agents, and a judge of what is a trap.

In each rule set there is a call that no rule forbids by itself and after which the rules together can no longer be
kept. The judge searches through all states of the rules; it shares nothing with a guard. ``guards.py`` plays with them.

Run as a program it makes random rule sets, of which some rules hold for each key, follows what a guard allows, and counts
wrong decisions, decisions that are not certain, and traps that are entered.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

#: A rule: what it says, of which tool, of which other, how many.
Rule = tuple[str, str, str, int]
State = tuple[int, ...]


@dataclass(frozen=True)
class RuleSet:
    """Rules over some tools; ``costs`` and ``budget`` where calls cost something."""

    name: str
    tools: str
    rules: tuple[Rule, ...]
    costs: Mapping[str, int] = field(default_factory=dict)
    budget: int = 0

    @cached_property
    def names(self) -> list[str]:
        """The tools."""
        return self.tools.split()


def _set(name: str, tools: str, *rules: Rule, budget: int = 0, **costs: int) -> RuleSet:
    return RuleSet(name, tools, rules, costs, budget)


SETS = (
    _set("pay in the end", "approve draft pay", ("before", "approve", "pay", 1), ("never after", "approve", "draft", 1),
         ("at least", "pay", "", 1)),
    _set("report from the budget", "search read report", ("at least", "report", "", 1), budget=10, search=1, read=2, report=5),
    _set("two required from one budget", "search audit report", ("at least", "audit", "", 1), ("at least", "report", "", 1),
         budget=12, search=1, audit=4, report=5),
    _set("freeze before release", "edit freeze test release", ("never after", "edit", "freeze", 1),
         ("before", "edit", "release", 1), ("before", "test", "release", 1), ("at least", "release", "", 1)),
    _set("few attempts", "try check submit", ("at most", "check", "", 2), ("before", "check", "submit", 2),
         ("before each", "try", "check", 1), ("at least", "submit", "", 1), ("at most", "try", "", 2)),
    _set("each order shipped", "order pack ship close", ("after each", "ship", "order", 1), ("never after", "ship", "close", 1),
         ("before each", "pack", "ship", 1)),
    _set("log out last", "login read logout", ("before", "login", "read", 1), ("never after", "login", "logout", 1),
         ("at least", "read", "", 1)),
    _set("secret and mail", "secret redact mail", ("never after", "mail", "secret", 1), ("at least", "mail", "", 1)),
    _set("refund once", "refund verify close", ("before", "verify", "refund", 1), ("at most", "verify", "", 1),
         ("before each", "verify", "close", 1), ("at least", "close", "", 1)),
    _set("two approvals", "ask approve lock deploy", ("before", "approve", "deploy", 2), ("never after", "approve", "lock", 1),
         ("at least", "deploy", "", 1), ("at least", "lock", "", 1)),
    _set("backup before migration", "backup migrate write", ("before", "backup", "migrate", 1),
         ("never after", "backup", "write", 1), ("at least", "migrate", "", 1)),
    _set("one coupon", "coupon quote buy", ("at most", "coupon", "", 1), ("before each", "coupon", "buy", 1),
         ("at least", "buy", "", 1), ("never after", "coupon", "quote", 1)),
    _set("plan, then act", "plan act review", ("before", "plan", "act", 1), ("never after", "plan", "act", 1),
         ("at least", "plan", "", 2), ("at least", "act", "", 1)),
    _set("answer after sources", "search cite answer", ("before", "cite", "answer", 2), ("before each", "search", "cite", 1),
         ("at most", "search", "", 3), ("at least", "answer", "", 1)),
    _set("rollback owed", "start commit rollback stop", ("after each", "commit", "start", 1),
         ("never after", "commit", "stop", 1), ("at least", "stop", "", 1)),
    _set("expensive check", "cheap dear finish", ("before", "dear", "finish", 1), ("at least", "finish", "", 1),
         budget=9, cheap=1, dear=6, finish=2),
    _set("key used up", "unlock open copy", ("at most", "unlock", "", 2), ("before each", "unlock", "open", 1),
         ("at least", "open", "", 2), ("never after", "unlock", "copy", 1)),
    _set("sign both", "signa signb seal send", ("never after", "signa", "seal", 1), ("never after", "signb", "seal", 1),
         ("before", "signa", "send", 1), ("before", "signb", "send", 1), ("before", "seal", "send", 1),
         ("at least", "send", "", 1)),
    _set("tests after edits", "edit test push", ("after each", "test", "edit", 1), ("at most", "test", "", 2),
         ("before each", "test", "push", 1), ("at least", "push", "", 1)),
    _set("three stages", "a b c d", ("before", "a", "b", 1), ("before", "b", "c", 1), ("before", "c", "d", 1),
         ("never after", "a", "c", 1), ("never after", "b", "c", 1), ("at least", "d", "", 1), ("at most", "d", "", 1),
         ("at most", "a", "", 2)),
)  # fmt: skip


class Judge:
    """The rules as numbers: what is allowed by each by itself, and from where an end can be reached."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.start: State = (*(0 for _ in rules.rules), rules.budget)
        self._alive: dict[State, bool] = {}

    def step(self, state: State, tool: str) -> State | None:
        """The state after a call; None where a rule forbids it by itself."""
        made = []
        for (kind, one, other, count), now in zip(self.rules.rules, state[:-1], strict=True):
            after = now
            match kind:
                case "before" | "before each":
                    if tool == other:
                        if now < count:
                            return None
                        after = 0 if kind == "before each" else now
                    elif tool == one:
                        after = min(now + 1, count)
                case "never after":
                    if tool == one and now:
                        return None
                    after = 1 if tool == other else now
                case "after each":
                    after = 1 if tool == other else 0 if tool == one else now
                case "at least":
                    after = min(now + (tool == one), count)
                case "at most":
                    after = now + (tool == one)
                    if after > count:
                        return None
            made.append(after)
        left = state[-1] - self.rules.costs.get(tool, 0)
        return None if left < 0 else (*made, left)

    def met(self, state: State) -> bool:
        """Whether the run may end here."""
        return all(
            now >= count if kind == "at least" else not now if kind == "after each" else True
            for (kind, _, _, count), now in zip(self.rules.rules, state[:-1], strict=True)
        )

    def alive(self, state: State) -> bool:
        """Whether a state in which the run may end can be reached: what is not alive is a trap."""
        if state not in self._alive:
            seen, todo, found = {state}, [state], False
            while todo and not found:
                now = todo.pop()
                found = self.met(now)
                for tool in self.rules.names:
                    after = self.step(now, tool)
                    if after is not None and after not in seen:
                        seen.add(after)
                        todo.append(after)
            self._alive[state] = found
        return self._alive[state]


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
    seconds: float = 0.0
    slowest: float = 0.0

    def walk(self, text: str, judge: KeyedJudge, rng: random.Random, steps: int, unsure: str) -> None:
        """Follow calls that a guard allows, and ask it about all others on the way; a trap that is entered ends it."""
        from formal_llm.guard import Call, Guard, GuardRules

        guard = Guard(GuardRules.from_string(text), judge.tools, unsure=unsure)  # type: ignore[arg-type]
        if judge.alive(judge.start) is not True:
            return
        state, place, keys = guard.start(), judge.start, dict[int, State]()
        for _ in range(steps):
            allowed = []
            for tool in judge.tools:
                for key in [*keys, *([len(keys)] if len(keys) < _MOST_KEYS else [])]:
                    call = Call(tool, {"key": key})
                    begun = time.process_time()
                    decision = state.check(call)
                    taken = time.process_time() - begun
                    self.seconds += taken
                    self.slowest = max(self.slowest, taken)
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
    """Random rule sets with rules for each key."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--walks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first set")
    parser.add_argument("--unsure", default="allow", choices=("allow", "ask", "block"))
    given = parser.parse_args()
    count = TrapCount()
    for seed in range(given.first, given.first + given.sets):
        rng = random.Random(seed)
        whole, each = make_keyed_rules(rng)
        judge = KeyedJudge(whole, each)
        for _ in range(given.walks):
            count.walk(write_keyed_rules(whole, each), judge, rng, given.steps, given.unsure)
    print(f"{count.checks:,} checks, {count.unknown:,} not certain, {len(count.wrong)} wrong; "
          f"{count.entered:,} of {count.traps:,} traps entered; {1e6 * count.seconds / max(1, count.checks):,.0f} µs a "
          f"check, {1000 * count.slowest:,.0f} ms the slowest")  # fmt: skip
    for one in count.wrong[:3]:
        print(one)


if __name__ == "__main__":
    main()
