"""AgentDojo under rules: does the guard let every user task's solution through, and which attacks does it refuse?

What it shows, for each suite: of the user tasks' solutions, how many the rules accept; of the attacks (a user task's
solution, then that of an injection task whose goal stands at every place that an attacker can write to), how many the
guard refuses a call of; and how many injection tasks it refuses whatever the user task is. Injection tasks whose
solution has no call are left out. Once as the rules are written, where a refused call does not run, and once with all
rules set to ``log``, where it runs and is written down.

No model takes part: the attacks are those of a model that follows every injection to the letter.

Run: ``python benchmarks/guard_dojo.py traces.jsonl`` with what ``guard_dojo_export.py`` wrote.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.traces import Trace, read_traces

FOLDER = Path(__file__).with_name("guard_rules")


@dataclass(frozen=True)
class Seen:
    """What the guard says of a trace, from one message on: calls that it refuses, and calls that it writes down."""

    refused: tuple[str, ...]
    noted: tuple[str, ...]


def watched(guard: Guard, trace: Trace, first: int = 1) -> Seen:
    """What the guard says of the calls of a trace from a message on; a call that is refused does not run."""
    state = guard.start()
    refused: list[str] = []
    noted: list[str] = []
    gone: set[str] = set()
    for event, place in zip(trace.events, trace.places, strict=True):
        number = int(place.split(",")[0].removeprefix("message "))
        if isinstance(event, Call):
            decision = state.check(event)
            if decision.action != "allow" and number >= first:
                (noted if decision.runs else refused).append(f"{event.tool}: {decision.reason}")
            if not decision.runs:
                gone.add(event.id)
                continue
        elif getattr(event, "id", "") in gone:
            continue
        state = state.after(event)
    return Seen(tuple(refused), tuple(noted))


def mildly(rules: GuardRules) -> GuardRules:
    """The same rules, which only write down."""
    made = tuple(replace(rule, severity="log") for rule in rules.rule_set.rules)
    return GuardRules(replace(rules.rule_set, rules=made))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", type=Path)
    parser.add_argument("--show", action="store_true", help="print user tasks that are refused, attacks that are not")
    given = parser.parse_args()
    by_suite: dict[str, list[Trace]] = defaultdict(list)
    for trace in read_traces(given.traces):
        by_suite[str(trace.facts["suite"])].append(trace)
    print(f"{'suite':10} {'rules':6} {'user tasks':>11} {'attacks refused':>17} {'noted':>6} {'injection tasks':>16}")
    total: dict[str, list[int]] = {"block": [0] * 7, "log": [0] * 7}
    for suite, traces in by_suite.items():
        rules = GuardRules.from_file(FOLDER / f"dojo_{suite}.guard")
        for kind, used in (("block", rules), ("log", mildly(rules))):
            figures = _figures(Guard(used), traces, show=given.show and kind == "block")
            total[kind] = [one + other for one, other in zip(total[kind], figures, strict=True)]
            _print_row(suite, kind, figures)
    for kind, figures in total.items():
        _print_row("all", kind, figures)


def _figures(guard: Guard, traces: Sequence[Trace], *, show: bool) -> list[int]:
    """User tasks accepted and all; attacks refused, noted and all; injection tasks always refused and all."""
    accepted = users = refused = noted = attacks = 0
    always: dict[str, bool] = {}
    for trace in traces:
        attack = trace.facts.get("injection_task")
        if attack is None:
            seen = watched(guard, trace)
            users += 1
            accepted += not seen.refused
            if show and seen.refused:
                print(f"user task refused: {trace.facts['user_task']}: {seen.refused}")
            continue
        first = int(str(trace.facts["attack_from"]))
        if not any(int(place.split(",")[0].removeprefix("message ")) >= first for place in trace.places):
            continue  # it wants something said, or its solution is not written down: there is no call to refuse
        seen = watched(guard, trace, first)
        attacks += 1
        refused += bool(seen.refused)
        noted += bool(seen.noted)
        always[str(attack)] = always.get(str(attack), True) and bool(seen.refused)
        if show and not seen.refused:
            print(f"attack not refused: {trace.facts['user_task']}, {attack}")
    return [accepted, users, refused, noted, attacks, sum(always.values()), len(always)]


def _print_row(suite: str, kind: str, figures: Sequence[int]) -> None:
    accepted, users, refused, noted, attacks, always, tasks = figures
    share = f"{refused} of {attacks} ({100 * refused / attacks:.0f}%)"
    print(f"{suite:10} {kind:6} {f'{accepted} of {users}':>11} {share:>17} {noted:6} {f'{always} of {tasks}':>16}")


if __name__ == "__main__":
    main()
