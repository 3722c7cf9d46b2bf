"""Trips as web pages: a map, the days, the costs against the budget, and the verdicts of the evaluators.

A page is self-contained: no scripts and no external resources (its content security policy forbids both), light or
dark as the reader's system. Every text is escaped, since names come from databases and models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import Expense, ResolvedDay, Stop, bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Money
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip_map import city_map, trip_map
from formal_llm.packs.travel.trip_text import CALLED, describe_query, format_money
from formal_llm.packs.travel.verdict import TripVerdict
from formal_llm.pictures.page import escape_text, html_page

_STYLE = """
:root { color-scheme: light dark; --line: #c8c8c8; --soft: #666; --good: #2e7d32; --bad: #b00020; --box: #f6f6f6; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa; --good: #7fd183; --bad: #ff8a8a;
  --box: #222; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .3rem; }
h2 small, .soft { color: var(--soft); font-weight: normal; font-size: .9rem; }
svg { width: 100%; height: auto; } .sights { width: 15rem; float: right; margin: 0 0 .5rem 1rem; }
table { border-collapse: collapse; width: 100%; } .days table { width: auto; min-width: 50%; }
th { text-align: left; font-weight: 600; padding-right: 1.2rem; width: 8rem; }
td:last-child { text-align: right; padding-left: 1.2rem; white-space: nowrap; }
th, td { vertical-align: top; padding-top: .15rem; padding-bottom: .15rem; }
td:not(:last-child) { overflow-wrap: anywhere; }
section.day { border-top: 1px solid var(--line); clear: both; }
.bar { background: var(--box); border: 1px solid var(--line); border-radius: 6px; height: 1.1rem; overflow: hidden; }
.bar div { background: var(--good); height: 100%; } .bar div.over { background: var(--bad); }
.good { color: var(--good); } .bad { color: var(--bad); }
"""
_KINDS = {"transportation": "journeys", "accommodation": "nights"}


def trip_page(plan: Sequence[Day], query: TravelQuery, world: World, *, about: Mapping[str, str] | None = None) -> str:
    """Write the page of a trip, valid or not.

    Args:
        plan: its days.
        query: the query.
        world: the database.
        about: additional rows for the table, such as who chose.
    """
    days = resolve_plan(plan, query, world)
    lines = bill(days, query)
    title = f"{query.org} to {query.dest}, {len(days)} days"
    parts = [f"<h1>{escape_text(title)}</h1>"]
    if query.text:
        parts.append(f'<p class="soft">{escape_text(query.text)}</p>')
    parts.append(trip_map(days, world))
    parts.append(_render_costs(lines, query))
    parts.append('<div class="days">')
    parts += _render_days(days, lines, query)
    parts.append("</div><h2>Is it valid?</h2>")
    parts += [_render_verdict(judge(plan, query, world)) for judge in (strict, official)]
    parts.append(_render_understood(query, about or {}))
    return html_page(title, _STYLE, "\n".join(part for part in parts if part))


def _render_costs(lines: Sequence[Expense], query: TravelQuery) -> str:
    """Write the costs by kind, and their share of the budget."""
    total = total_of(lines)
    kinds: dict[str, Money] = {}
    for line in lines:
        kind = _KINDS.get(line.field, "meals")
        kinds[kind] = kinds.get(kind, 0) + (line.total or 0)
    spent = ", ".join(f"{kind} {format_money(amount)}" for kind, amount in kinds.items())
    heading = f"<h2>Costs <small>{escape_text(spent)}; attractions cost nothing</small></h2>"
    if query.budget is None:
        return f"{heading}<p>{format_money(total)} for {query.people}, without a budget</p>"
    share = 100.0 if not query.budget else float(100 * total / query.budget)
    over = total > query.budget
    rest = f"{format_money(total - query.budget)} too much" if over else f"{format_money(query.budget - total)} left"
    return (
        f'{heading}<div class="bar"><div class="{"over" if over else "within"}" style="width:{min(share, 100):.1f}%">'
        f"</div></div><p>{format_money(total)} of {format_money(query.budget)} for {query.people}: "
        f'<span class="{"bad" if over else "good"}">{rest}</span></p>'
    )


def _render_days(days: Sequence[ResolvedDay], lines: Sequence[Expense], query: TravelQuery) -> list[str]:
    parts: list[str] = []
    for day in days:
        items = [line for line in lines if line.day == day.number]
        on = "" if day.on is None else f", {day.on:%A} {day.on.day} {day.on:%B %Y}"
        head = f"Day {day.number}{on} <small>{escape_text(day.day.current_city)}</small>"
        parts.append(f'<section class="day"><h2>{head}</h2>')
        numbered = list(enumerate(day.sights, 1))
        picture = city_map(day.cities[-1].city if day.cities else "", numbered)
        if picture:
            parts.append(f'<div class="sights">{picture}</div>')
        rows = [_render_row(CALLED[line.field], line.text, format_money(line.total)) for line in items]
        rows += [
            _render_row("Sight" if number == 1 else "", _render_sight(number, stop), "") for number, stop in numbered
        ]
        if items:
            rows.append(
                _render_row(
                    "", "all of it" if query.people == 1 else f"for {query.people}", format_money(total_of(items))
                )
            )
        parts.append(f"<table>{''.join(rows)}</table></section>")
    return parts


def _render_sight(number: int, stop: Stop) -> str:
    return f"{number}. {stop.named.text}"


def _render_row(name: str, text: str, cost: str) -> str:
    return f"<tr><th>{escape_text(name)}</th><td>{escape_text(text)}</td><td>{escape_text(cost)}</td></tr>"


def _render_verdict(verdict: TripVerdict) -> str:
    if verdict.final:
        return f'<p class="good">Yes: the {verdict.evaluator} evaluator finds nothing wrong.</p>'
    findings = "".join(f"<li>{escape_text(str(one))}</li>" for one in verdict.findings)
    return f'<p class="bad">No, says the {verdict.evaluator} evaluator:</p><ul>{findings}</ul>'


def _render_understood(query: TravelQuery, about: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th>{escape_text(name)}</th><td>{escape_text(text)}</td><td></td></tr>"
        for name, text in {**describe_query(query), **about}.items()
    )
    return f"<h2>What was understood</h2><table>{rows}</table>"
