"""Guards of live agents on twenty rule sets with traps: ours and AgentLTL in one run.

Run: python benchmarks/guards.py [--runs N]

In each rule set there is a call that no rule forbids by itself and after which the rules together can no longer be
kept: a *trap*. A random agent calls any tool; an adversarial one makes for a trap wherever there is one. A run has 50
tries. What is refused is not made, and not tried again before another call was made. The run ends when the rules are
met and the guard lets it. Told are the traps that were entered, the runs that end with a rule unmet or never end, and
the microseconds of processor time a check takes. Each guard has the rules in its own notation: for AgentLTL formulas
with past operators, and those about the end also before the final answer.

What is a trap is judged by a search through all states of the rules, shared with no guard (``guard_traps.py``).
AgentLTL is left out where it is not installed: ``pip install agentltl``.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from time import process_time
from typing import Any, Protocol

from benchmarks.guard_traps import SETS, Judge, RuleSet
from formal_llm.guard import Call, Guard, GuardRules

_TRIES = 50

# -- the guards -------------------------------------------------------------------------------------------------------


class Watcher(Protocol):
    """A guard in a run."""

    def asks(self, tool: str) -> bool:
        """Whether a call may be made."""

    def made(self, tool: str) -> None:
        """A call was made."""

    def stops(self) -> bool:
        """Whether the run may end."""


_SAID = {
    "before": "{2} {0} before {1}", "before each": "{2} {0} before each {1}", "never after": "never {0} after {1}",
    "after each": "{0} after each {1}", "at least": "at least {2} {0}", "at most": "at most {2} {0}",
}  # fmt: skip


def guard_text(rules: RuleSet) -> str:
    """The rules as a rule file."""
    lines = [
        f"{tool}: {tool} with cost = {rules.costs[tool]}" if tool in rules.costs else f"{tool}: {tool}"
        for tool in rules.names
    ]
    lines += [f"rule r{place}: {_SAID[kind].format(*rest)}" for place, (kind, *rest) in enumerate(rules.rules)]
    return "\n".join([*lines, *([f"rule budget: budget cost <= {rules.budget}"] if rules.budget else [])])


class Ours:
    """A state of our guard."""

    def __init__(self, guard: Guard) -> None:
        self.state = guard.start()

    def asks(self, tool: str) -> bool:
        return self.state.check(Call(tool)).runs

    def made(self, tool: str) -> None:
        self.state = self.state.after(Call(tool))

    def stops(self) -> bool:
        return self.state.may_stop().runs


def ours(rules: RuleSet) -> Callable[[], Watcher]:
    guard = Guard(GuardRules.from_string(guard_text(rules)), rules.names)
    return lambda: Ours(guard)


class AgentLTL:
    """An enforcer of AgentLTL."""

    def __init__(self, enforcer: Any) -> None:
        self.enforcer = enforcer

    def asks(self, tool: str) -> bool:
        return bool(self.enforcer.check(tool, {}).allowed)

    def made(self, tool: str) -> None:
        self.enforcer.record_completed(tool, {})

    def stops(self) -> bool:
        return bool(self.enforcer.check_termination().allowed)


def agent_ltl(rules: RuleSet) -> Callable[[], Watcher]:
    import agentltl as ltl

    logging.getLogger("agentltl").setLevel(logging.ERROR)  # it writes a line for each refusal

    def spent(trace: Any, _: int) -> bool:
        return sum(rules.costs.get(call.tool_name, 0) for call in trace) <= rules.budget

    def formula(kind: str, one: str, other: str, count: int) -> Any:
        now, then = ltl.Now(one), ltl.Now(other)
        match kind:
            case "before":
                return ltl.Globally(ltl.Implies(then, ltl.CountBefore(now, count, ">=")))
            case "before each":
                return ltl.Globally(ltl.Implies(then, ltl.Previous(ltl.Since(ltl.Not(then), now))))
            case "never after":
                return ltl.Globally(ltl.Implies(now, ltl.Not(ltl.Previous(ltl.Once(then)))))
            case "after each":
                return ltl.Globally(ltl.Implies(then, ltl.Eventually(now)))
        if kind == "at least":
            return ltl.Eventually(ltl.And(now, ltl.CountBefore(now, count - 1, ">=")))
        return ltl.CalledNTimes(one, count, "<=")

    constraints = [
        ltl.Constraint(f"r{place}", formula(*rule), applies_to_final_answer=True)
        for place, rule in enumerate(rules.rules)
    ]
    if rules.budget:
        constraints.append(ltl.Constraint("budget", ltl.Predicate(spent, "budget", runtime_safe=True)))
    block = ltl.ConstraintSeverity.PERSISTENT_BLOCK
    return lambda: AgentLTL(ltl.Enforcer(constraints, default_severity=block, max_termination_nudges=10**9))


GUARDS: Mapping[str, Callable[[RuleSet], Callable[[], Watcher]]] = {"formal_llm": ours, "agentltl": agent_ltl}


# -- the runs ---------------------------------------------------------------------------------------------------------


@dataclass
class Score:
    """What came of some runs."""

    runs: int = 0
    traps: int = 0
    unmet: int = 0
    refused_wrongly: int = 0
    checks: int = 0
    seconds: float = 0.0

    @property
    def micros(self) -> float:
        return self.seconds / max(1, self.checks) * 1e6


def play(rules: RuleSet, make: Callable[[], Watcher], adversarial: bool, rng: random.Random, score: Score) -> None:
    """One run."""
    judge, watcher = Judge(rules), make()
    state = judge.start
    trapped = ended = False
    refused: set[str] = set()
    for _ in range(_TRIES):
        if judge.met(state) and rng.random() < 0.3 and watcher.stops():
            ended = True
            break
        tools = [tool for tool in rng.sample(rules.names, len(rules.names)) if tool not in refused]
        if not tools:
            break
        tool = tools[0]
        if adversarial:
            afters = [(one, judge.step(state, one)) for one in tools]
            tool = next((one for one, after in afters if after is not None and not judge.alive(after)), tool)
        begun = process_time()
        allowed = watcher.asks(tool)
        score.seconds += process_time() - begun
        score.checks += 1
        after = judge.step(state, tool)
        if allowed and after is not None:
            watcher.made(tool)
            state = after
            refused.clear()
            trapped = trapped or not judge.alive(state)
        else:
            refused.add(tool)
            score.refused_wrongly += not allowed and after is not None and judge.alive(after)
    score.runs += 1
    score.traps += trapped
    score.unmet += not (ended or (judge.met(state) and watcher.stops()))


def measure(name: str, runs: int) -> dict[bool, Score]:
    """The scores of a guard over all rule sets: of the random agent, and of the adversarial one."""
    found = {False: Score(), True: Score()}
    for rules in SETS:
        make = GUARDS[name](rules)
        for adversarial, number in product((False, True), range(runs)):
            play(rules, make, adversarial, random.Random(number), found[adversarial])
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10, help="runs of each rule set and agent")
    runs = parser.parse_args().runs
    print(
        f"{'guard':<12}{'agent':<13}{'runs':>5}{'traps entered':>15}{'end unmet':>11}{'refused for nothing':>21}{'µs/check':>10}"
    )
    for name in GUARDS:
        try:
            scores = measure(name, runs)
        except ImportError as error:
            print(f"{name:<12}is not installed ({error}): pip install agentltl")
            continue
        for adversarial, score in scores.items():
            agent = "adversarial" if adversarial else "random"
            print(
                f"{name:<12}{agent:<13}{score.runs:>5}{score.traps:>15}{score.unmet:>11}{score.refused_wrongly:>21}{score.micros:>10.1f}"
            )


if __name__ == "__main__":
    main()
