"""Trips as web pages: a map, the days, the costs against the budget, and the verdicts of the evaluators.

A page is self-contained: no scripts and no external resources (its content security policy forbids both), light or
dark as the reader's system. Every text is escaped, since names come from databases and models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations, pairwise
from typing import NamedTuple

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import Expense, ResolvedDay, Stop, bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Attraction, Money
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip_text import CALLED, describe_query, format_money
from formal_llm.packs.travel.verdict import TripVerdict
from formal_llm.pictures.page import escape_text, html_page
from formal_llm.pictures.visible import visible

_WIDTH, _HEIGHT, _EDGE = 720, 400, 90
_SMALL, _SMALL_EDGE = 240, 26
#: The minimum distance between cities that keeps their names legible.
_ROOM = 140
_LAND, _LINE, _INK, _CITY, _HOME, _SIGHT = "#EEF3F7", "#3B6EA5", "#12283F", "#C2560C", "#12283F", "#4F7F52"


def trip_map(days: Sequence[ResolvedDay], world: World) -> str:
    """Draw the cities of a trip and the ways between them; empty if no city can be read."""
    route = [where.city for day in days for where in day.cities or ()]
    cities = list(dict.fromkeys(route))
    if not cities:
        return ""
    positions = {city: place for city in cities if (place := find_middle(world.attractions(city))) is not None}
    known = len(positions) == len(cities) and len(set(positions.values())) == len(cities)
    exact = _project_places(positions, _WIDTH, _HEIGHT, _EDGE) if known else {}
    spots = _spread_cities(exact) if known else _place_in_ring(cities)
    labels: list[str] = []
    occupied = [spot for city in cities for spot in (spots[city], _label_place(spots[city]))]
    parts = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="10" fill="{_LAND}"/>',
        f'<defs><marker id="to" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{_LINE}"/></marker></defs>',
    ]
    for day in days:
        if day.travels and day.cities is not None and day.cities[0].city != day.cities[1].city:
            mode = (day.journey.mode if day.journey is not None else None) or "?"
            arc = _Arc.from_ends(spots[day.cities[0].city], spots[day.cities[1].city])
            parts.append(arc.draw_line())
            spot = max(arc.list_spots(), key=lambda one: min(_apart_by(one, other) for other in occupied))
            occupied.append(spot)
            labels.append(_draw_text(*spot, f"day {day.number}: {mode}"))
    parts += [_draw_dot(spots[city], home=city == cities[0]) for city in cities]
    labels += [_draw_label(city, spots[city]) for city in cities]
    note = "" if spots == exact else "cities that lie close together are drawn apart"
    note = note if known else "where these cities lie is not known"
    labels.append(_draw_text(_WIDTH / 2, _HEIGHT - 12, note))
    return _build_svg(_WIDTH, _HEIGHT, parts + labels, f"Map of the trip: {' to '.join(_in_order(route))}")


def city_map(city: str, stops: Sequence[tuple[int, Stop]]) -> str:
    """Draw the numbered attractions of a city; empty if fewer than two have a position."""
    positions: dict[str, tuple[float, float]] = {}
    for number, stop in stops:
        place = find_middle([row for row in stop.rows if isinstance(row, Attraction)])
        if place is not None:
            positions[str(number)] = place
    if len(positions) < 2:
        return ""
    parts = [f'<rect width="{_SMALL}" height="{_SMALL}" rx="8" fill="{_LAND}"/>']
    for name, (x, y) in _move_apart(_project_places(positions, _SMALL, _SMALL, _SMALL_EDGE)).items():
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="{_SIGHT}"/>')
        parts.append(_draw_text(x, y + 4, name, fill="#fff", halo="none"))
    return _build_svg(_SMALL, _SMALL, parts, f"Sights in {city}")


def find_middle(rows: Sequence[Attraction]) -> tuple[float, float] | None:
    """Return the middle of attractions as latitude and longitude; None if no position is known."""
    known = [row.place for row in rows if row.place is not None]
    if not known:
        return None
    # The median: one attraction with a wrong position does not move the city.
    return _find_median([one for one, _ in known]), _find_median([one for _, one in known])


def _find_median(numbers: Sequence[float]) -> float:
    ordered = sorted(numbers)
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2


def _project_places(
    lying: Mapping[str, tuple[float, float]], width: int, height: int, edge: int
) -> dict[str, tuple[float, float]]:
    """Project positions to the picture, as large as possible, to scale at the mean latitude, north at the top."""
    squeeze = math.cos(math.radians(sum(lat for lat, _ in lying.values()) / len(lying)))
    points = {name: (lon * squeeze, -lat) for name, (lat, lon) in lying.items()}
    left, right = min(x for x, _ in points.values()), max(x for x, _ in points.values())
    top, bottom = min(y for _, y in points.values()), max(y for _, y in points.values())
    scale = min(
        (width - 2 * edge) / (right - left) if right > left else math.inf,
        (height - 2 * edge) / (bottom - top) if bottom > top else math.inf,
    )
    scale = scale if math.isfinite(scale) else 1.0
    across, down = (width - scale * (right - left)) / 2, (height - scale * (bottom - top)) / 2
    return {name: (across + scale * (x - left), down + scale * (y - top)) for name, (x, y) in points.items()}


def _place_in_ring(cities: Sequence[str]) -> dict[str, tuple[float, float]]:
    turn = 2 * math.pi / len(cities)
    return {
        city: (
            _WIDTH / 2 - (_WIDTH / 2 - _EDGE) * math.cos(turn * place),
            _HEIGHT / 2 - 10 - (_HEIGHT / 2 - _EDGE) * math.sin(turn * place),
        )
        for place, city in enumerate(cities)
    }


def _move_apart(points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Move points so that no number hides another."""
    placed: dict[str, tuple[float, float]] = {}
    for name, (x, y) in points.items():
        for step in range(60):
            angle, reach = step * 2.4, 3.0 * math.sqrt(step) * 2
            spot = (
                min(max(x + reach * math.cos(angle), 14), _SMALL - 14),
                min(max(y + reach * math.sin(angle), 14), _SMALL - 14),
            )
            if all(math.dist(spot, other) > 21 for other in placed.values()):
                break
        placed[name] = spot
    return placed


def _spread_cities(points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Push points apart until there is room for their names; points with enough room keep their places."""
    spots = dict(points)
    for _ in range(80):
        moved = False
        for one, other in combinations(spots, 2):
            (x0, y0), (x1, y1) = spots[one], spots[other]
            gap = math.dist(spots[one], spots[other])
            if gap < _ROOM:
                across, down = ((x1 - x0) / gap, (y1 - y0) / gap) if gap > 0.01 else (1.0, 0.0)
                push = (_ROOM - gap) / 2 + 0.5
                spots[one] = _keep_inside(x0 - across * push, y0 - down * push)
                spots[other] = _keep_inside(x1 + across * push, y1 + down * push)
                moved = True
        if not moved:
            break
    return spots


def _keep_inside(x: float, y: float) -> tuple[float, float]:
    return min(max(x, _EDGE), _WIDTH - _EDGE), min(max(y, _EDGE / 2), _HEIGHT - _EDGE * 0.6)


class _Arc(NamedTuple):
    """A way as an arc, so that both directions are visible: its start, its control point and its end."""

    start: tuple[float, float]
    bend: tuple[float, float]
    end: tuple[float, float]

    @classmethod
    def from_ends(cls, start: tuple[float, float], end: tuple[float, float]) -> _Arc:
        (x0, y0), (x1, y1) = start, end
        share = 2 * min(30.0 / (math.dist(start, end) or 1.0), 0.12)
        bend = (x0 + x1) / 2 + share * (y1 - y0), (y0 + y1) / 2 - share * (x1 - x0)
        return cls(start, bend, end)

    def draw_line(self) -> str:
        """Draw the arc, which ends before the dot of the city."""
        (x0, y0), (cx, cy), (x1, y1) = self
        short = 11 / (math.dist(self.bend, self.end) or 1.0)
        ex, ey = x1 + (cx - x1) * short, y1 + (cy - y1) * short
        return (
            f'<path d="M{x0:.1f} {y0:.1f}Q{cx:.1f} {cy:.1f} {ex:.1f} {ey:.1f}" fill="none" stroke="{_LINE}" '
            f'stroke-width="2" marker-end="url(#to)"/>'
        )

    def list_spots(self) -> list[tuple[float, float]]:
        """Return positions for a label on the arc, the middle first."""
        (x0, y0), (cx, cy), (x1, y1) = self
        return [
            (
                (1 - t) ** 2 * x0 + 2 * t * (1 - t) * cx + t * t * x1,
                (1 - t) ** 2 * y0 + 2 * t * (1 - t) * cy + t * t * y1 + 4,
            )
            for t in (0.5, 0.4, 0.6, 0.3, 0.7)
        ]


def _apart_by(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance between two labels, which are wide and low, up to a distance that suffices."""
    return min(math.hypot((one[0] - other[0]) / 3, one[1] - other[1]), 25.0)


def _draw_dot(at: tuple[float, float], *, home: bool) -> str:
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="7" fill="{_HOME if home else _CITY}"/>'


def _label_place(at: tuple[float, float]) -> tuple[float, float]:
    return at[0], at[1] + (24 if at[1] > _HEIGHT / 2 else -14)


def _draw_label(name: str, at: tuple[float, float]) -> str:
    short = name if len(name) <= 28 else f"{name[:27]}…"
    return _draw_text(*_label_place(at), short, bold=True)


def _draw_text(x: float, y: float, text: str, *, fill: str = _INK, halo: str = _LAND, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="13" font-family="system-ui, sans-serif" '
        f'fill="{fill}" stroke="{halo}" stroke-width="4" paint-order="stroke"{weight}>{escape(visible(text))}</text>'
    )


def _build_svg(width: int, height: int, drawn: Sequence[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(visible(title))}</title>{''.join(drawn)}</svg>"
    )


def _in_order(route: Sequence[str]) -> list[str]:
    return [*route[:1], *(city for before, city in pairwise(route) if city != before)]


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
            _render_row("Sight" if number == 1 else "", f"{number}. {stop.named.text}", "") for number, stop in numbered
        ]
        if items:
            rows.append(
                _render_row(
                    "", "all of it" if query.people == 1 else f"for {query.people}", format_money(total_of(items))
                )
            )
        parts.append(f"<table>{''.join(rows)}</table></section>")
    return parts


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
