"""Recorded conversations of tau-bench's airline domain under its written policy, as a file of rules.

What it shows: how many conversations break the policy, how many of those had failed (reward 0), what share of all
failures that explains, and which reference solutions break the written policy themselves. The rules
(``guard_rules/tau_airline.guard``) are written from ``policy.md`` alone; the rewards are only read for the table.

What the airline knows and the conversation does not show is added to the reservations that the agent looked up, from
the flight table: whether the airline cancelled a flight of it, and whether one has been flown.

Run: ``python benchmarks/guard_tau.py FOLDER`` with the folder of ``trajectories.jsonl`` and ``flights.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formal_llm.guard import Call, Guard, GuardEvent, GuardRules, Result, Said
from formal_llm.guard.traces import Trace, read_traces
from formal_llm.guard.verifying import TraceReport, verify_trace

RULES = Path(__file__).with_name("guard_rules") / "tau_airline.guard"
#: Calls that change the booking database.
WRITES = ("book_reservation", "cancel_reservation", "update_reservation")


@dataclass(frozen=True)
class Airline:
    """What the airline knows: the status of flights by day, and the reservations and profiles as they were at first."""

    flights: Mapping[str, Any]
    reservations: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Mapping[str, Any]]

    def known(self, reservation: Mapping[str, Any]) -> dict[str, Any]:
        """A reservation, with what the airline knows of its flights."""
        statuses = {self._status(flight) for flight in reservation.get("flights", ())}
        flown = bool(statuses & {"landed", "flying"})
        return {**reservation, "airline_cancelled": "cancelled" in statuses, "flown": flown}

    def _status(self, flight: Mapping[str, Any]) -> str:
        days = self.flights.get(flight["flight_number"], {}).get("dates", {})
        return str(days.get(flight["date"], {}).get("status", ""))

    def enriched(self, trace: Trace) -> Trace:
        """A trace with what the airline knows."""
        return replace(trace, events=tuple(self._enrich(event) for event in trace.events))

    def _enrich(self, event: GuardEvent) -> GuardEvent:
        if isinstance(event, Result) and event.tool == "get_reservation_details":
            value = _object(event.value)
            return replace(event, value=self.known(value)) if value else event
        return event

    def solution(self, number: int, actions: Sequence[Mapping[str, Any]]) -> Trace:
        """A reference solution as a trace: what it changes is looked up and confirmed before, as the policy wants."""
        events: list[GuardEvent] = [Said("user", "yes")]
        seen: set[str] = set()
        notes: list[str] = []

        def look(tool: str, key: str, found: Mapping[str, Mapping[str, Any]], name: str, whole: bool) -> None:
            if f"{tool} {name}" in seen:
                return
            seen.add(f"{tool} {name}")
            if name not in found:
                notes.append(f"{name} was looked up in no conversation")
                return
            value = self.known(found[name]) if whole else dict(found[name])
            events.extend([Call(tool, {key: name}), Result(tool, {key: name}, value)])

        for action in actions:
            given = action["kwargs"]
            if action["name"].startswith(WRITES) and "reservation_id" in given:
                look("get_reservation_details", "reservation_id", self.reservations, given["reservation_id"], True)
            user = given.get("user_id") or self.reservations.get(given.get("reservation_id"), {}).get("user_id")
            if user and action["name"].startswith(("book", "send")):
                look("get_user_details", "user_id", self.profiles, user, False)
            if action["name"] == "get_reservation_details":
                look("get_reservation_details", "reservation_id", self.reservations, given["reservation_id"], True)
                continue
            if action["name"] == "get_user_details":
                look("get_user_details", "user_id", self.profiles, given["user_id"], False)
                continue
            value = {**given, "cabin": given["cabin"]} if "cabin" in given else None
            events.extend([Call(action["name"], given), Result(action["name"], given, value)])
        places = tuple(f"step {place}" for place in range(1, len(events) + 1))
        return Trace(f"task {number}", tuple(events), places, {}, tuple(dict.fromkeys(notes)))


def _object(value: object) -> dict[str, Any] | None:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def airline(folder: Path, traces: Sequence[Trace]) -> Airline:
    """What the airline knows; reservations and profiles are those that were looked up before anything was changed."""
    reservations: dict[str, Mapping[str, Any]] = {}
    profiles: dict[str, Mapping[str, Any]] = {}
    for trace in traces:
        for event in trace.events:
            if isinstance(event, Call) and event.tool.startswith(WRITES):
                break
            if isinstance(event, Result) and (value := _object(event.value)):
                if event.tool == "get_reservation_details":
                    reservations.setdefault(str(event.arguments["reservation_id"]), value)
                elif event.tool == "get_user_details":
                    profiles.setdefault(str(event.arguments["user_id"]), value)
    return Airline(json.loads((folder / "flights.json").read_text()), reservations, profiles)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of trajectories.jsonl and flights.json")
    parser.add_argument("--show", action="store_true", help="print every violation")
    given = parser.parse_args()
    traces = read_traces(given.folder / "trajectories.jsonl")
    known = airline(given.folder, traces)
    guard = Guard(GuardRules.from_file(RULES))
    begun = time.process_time()
    reports = [verify_trace(guard, known.enriched(trace), repair=False) for trace in traces]
    spent = time.process_time() - begun
    _print_table(reports, guard)
    tasks = {trace.facts["task_id"]: trace.facts["actions"] for trace in traces}
    solutions = [
        verify_trace(guard, known.solution(number, actions), repair=False)  # type: ignore[arg-type]
        for number, actions in sorted(tasks.items(), key=str)
    ]
    judged = [one for one in solutions if not one.notes]
    broken = [one for one in judged if not one.valid]
    print(f"\nreference solutions that break the written policy: {len(broken)} of {len(judged)}")
    for one in broken:
        print(f"  {one.trace.name}: {', '.join(dict.fromkeys(found.rule for found in one.violations))}")
    print(f"not judged: {len(solutions) - len(judged)}, which change what no conversation looked up")
    events = sum(len(trace.events) for trace in traces)
    print(f"\n{events} events in {spent:.2f} s of processor time: {1e6 * spent / events:.0f} µs each")
    if given.show:
        for report in [*reports, *broken]:
            if not report.valid:
                print(f"\nreward {report.trace.facts.get('reward')}: {report}")


def _print_table(reports: Sequence[TraceReport], guard: Guard) -> None:
    failed = [report for report in reports if report.trace.facts["reward"] != 1]
    print(f"{len(reports)} conversations, {len(failed)} of them failed; {len(guard.rules.names)} rules\n")
    print(f"{'rule':24} {'flagged':>8} {'failed':>7} {'of all failures':>16}")
    for name in guard.rules.names:
        flagged = [one for one in reports if any(name in found.rules for found in one.violations)]
        if flagged:
            _print_row(name, flagged, failed)
    data = [one for one in reports if any(set(found.rules) - {"confirmed", "one-call"} for found in one.violations)]
    _print_row("rules over data", data, failed)
    _print_row("all rules", [one for one in reports if not one.valid], failed)


def _print_row(name: str, flagged: Sequence[TraceReport], failed: Sequence[TraceReport]) -> None:
    bad = sum(one in failed for one in flagged)
    print(f"{name:24} {len(flagged):8} {bad:7} {100 * bad / len(failed):15.0f}%")


if __name__ == "__main__":
    main()
