"""Trips and verdicts as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.packs.travel.candidates import convert_to_cents, format_dollars
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import find_impossible
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Money
from formal_llm.packs.travel.verdict import COMMONSENSE, HARD, TripVerdict

#: The names of the fields of a day that have a cost.
CALLED = {
    "transportation": "Journey", "breakfast": "Breakfast", "lunch": "Lunch", "dinner": "Dinner",
    "accommodation": "Night",
}  # fmt: skip

#: What is written after a meal for which a journey leaves no time.
NO_TIME = " (the journey leaves no time for it)"


def format_money(amount: Money | None) -> str:
    """Format an amount of money; ``"?"`` if it is unknown."""
    return "?" if amount is None else format_dollars(convert_to_cents(amount))


def describe_query(query: TravelQuery) -> dict[str, str]:
    """Describe a query: texts by the names of its parts."""
    wishes = query.constraints
    several = query.visiting_city_number > 1
    rows = {
        "From": query.org,
        "To": f"{query.visiting_city_number} cities in {query.dest}" if several else query.dest,
        "Days": f"{query.days}" + (f", {query.dates[0]} to {query.dates[-1]}" if query.dates else ""),
        "People": str(query.people),
        "Budget": "" if query.budget is None else format_money(query.budget),
        "Rooms": ", ".join(filter(None, (wishes.room_type, wishes.house_rule and f"{wishes.house_rule} allowed"))),
        "Food": ", ".join(wishes.cuisines),
        "Travel": wishes.transportation or "",
    }
    unclear = {"Unclear": "; ".join(query.not_understood)} if query.not_understood else {}
    return {name: text or "any" for name, text in rows.items()} | unclear


def understood_text(query: TravelQuery) -> str:
    """Describe a query, one part per line."""
    return "".join(f"{name + ':':9}{text}\n" for name, text in describe_query(query).items())


def trip_text(plan: Sequence[Day], query: TravelQuery, world: World) -> str:
    """Write the days of a trip with their costs, and the rest of the budget."""
    days = resolve_plan(plan, query, world)
    lines = bill(days, query)
    parts: list[str] = []
    impossible = set(find_impossible(days))
    for day in days:
        on = "" if day.on is None else f", {day.on:%A} {day.on.day} {day.on:%B %Y}"
        parts.append(f"Day {day.number}{on}: {day.day.current_city}")
        parts += [
            f"  {CALLED[line.field]:11}{format_money(line.total):>9}  {line.text}"
            + NO_TIME * ((day.number, line.field) in impossible)
            for line in lines
            if line.day == day.number
        ]
        parts += [f"  {'Sight':11}{'':9}  {stop.named.text}" for stop in day.sights]
        parts.append("")
    total = total_of(lines)
    people = "one person" if query.people == 1 else f"{query.people} people"
    rest = "" if query.budget is None else _describe_rest(query.budget - total)
    parts.append(f"{format_money(total)} for {people}{rest}")
    return "\n".join(parts) + "\n"


def _describe_rest(rest: Money) -> str:
    return (
        f"; {format_money(rest)} of the budget left" if rest >= 0 else f"; {format_money(-rest)} more than the budget"
    )


def verdicts_text(verdicts: Sequence[TripVerdict]) -> str:
    """Write verdicts: a line for each check that is asked for, then the findings."""
    lines = ["".join([f"{'':26}", *(f"{one.evaluator:14}" for one in verdicts)]).rstrip()]
    for check in (*COMMONSENSE, *HARD):
        states = [one.states[check] for one in verdicts]
        if any(state != "not asked" for state in states):
            lines.append("".join([f"{check:26}", *(f"{state:14}" for state in states)]).rstrip())
    finals = ["passed" if one.final else "failed" if one.delivered else "no plan" for one in verdicts]
    lines.append("".join([f"{'final':26}", *(f"{state:14}" for state in finals)]).rstrip())
    lines += [f"{one.evaluator}: as the published scripts, commit {one.commit}" for one in verdicts if one.commit]
    for one in verdicts:
        lines += [f"{one.evaluator}: {finding}" for finding in one.findings]
    return "\n".join(lines) + "\n"
