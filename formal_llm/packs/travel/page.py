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

from formal_llm.packs.travel.candidates import format_dollars
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.fronts import FrontTrip
from formal_llm.packs.travel.hours import find_impossible
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.planning import days_of
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import Expense, ResolvedDay, Stop, bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Attraction, Money
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip import Trip
from formal_llm.packs.travel.trip_text import CALLED, NO_TIME, describe_query, format_money
from formal_llm.packs.travel.verdict import TripVerdict
from formal_llm.pictures.page import escape_text, html_page
from formal_llm.pictures.visible import visible

_WIDTH, _HEIGHT, _EDGE = 460, 340, 70
_SMALL, _SMALL_EDGE = 240, 26
#: The minimum distance between cities that keeps their names legible.
_ROOM = 110
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
    spots = (
        _spread_points(exact, _ROOM, _EDGE, _WIDTH - _EDGE, _EDGE / 2, _HEIGHT - _EDGE * 0.6)
        if known
        else _place_in_ring(cities)
    )
    parts = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="10" fill="{_LAND}"/>',
        f'<defs><marker id="to" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{_LINE}"/></marker></defs>',
    ]
    arcs: dict[str, _Arc] = {}
    for day in days:
        if day.travels and day.cities is not None and day.cities[0].city != day.cities[1].city:
            mode = (day.journey.mode if day.journey is not None else None) or "?"
            arc = _Arc.from_ends(spots[day.cities[0].city], spots[day.cities[1].city])
            arcs[f"day {day.number}: {mode}"] = arc
            parts.append(arc.draw_line())
    parts += [_draw_dot(spots[city], home=city == cities[0]) for city in cities]
    note = "" if spots == exact else "cities that lie close together are drawn apart"
    note = note if known else "where these cities lie is not known"
    drawn = [point for arc in arcs.values() for point in arc.list_points(40)] + list(spots.values())
    labels = [_draw_text(_WIDTH / 2, _HEIGHT - 12, note)]
    labels += [
        _draw_text(*_place_label(_shorten(city), _beside(spots[city], city), drawn), _shorten(city), bold=True)
        for city in cities
    ]
    labels += [_draw_text(*_place_label(text, arc.list_spots(text), drawn), text) for text, arc in arcs.items()]
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
    places = _project_places(positions, _SMALL, _SMALL, _SMALL_EDGE)
    for name, (x, y) in _spread_points(places, 21, 14, _SMALL - 14, 14, _SMALL - 14).items():
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


def _spread_points(
    points: Mapping[str, tuple[float, float]], room: float, left: float, right: float, top: float, bottom: float
) -> dict[str, tuple[float, float]]:
    """Push points apart inside a box until there is room for each; points with enough room keep their places."""
    spots = dict(points)

    def keep_inside(x: float, y: float) -> tuple[float, float]:
        return min(max(x, left), right), min(max(y, top), bottom)

    for _ in range(80):
        moved = False
        for one, other in combinations(spots, 2):
            (x0, y0), (x1, y1) = spots[one], spots[other]
            gap = math.dist(spots[one], spots[other])
            if gap < room:
                across, down = ((x1 - x0) / gap, (y1 - y0) / gap) if gap > 0.01 else (1.0, 0.0)
                push = (room - gap) / 2 + 0.5
                spots[one] = keep_inside(x0 - across * push, y0 - down * push)
                spots[other] = keep_inside(x1 + across * push, y1 + down * push)
                moved = True
        if not moved:
            break
    return spots


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

    def list_points(self, count: int) -> list[tuple[float, float]]:
        """Return points on the arc at equal steps."""
        (x0, y0), (cx, cy), (x1, y1) = self
        steps = (step / count for step in range(count + 1))
        return [
            (
                (1 - t) ** 2 * x0 + 2 * t * (1 - t) * cx + t * t * x1,
                (1 - t) ** 2 * y0 + 2 * t * (1 - t) * cy + t * t * y1,
            )
            for t in steps
        ]

    def list_spots(self, text: str) -> list[tuple[float, float]]:
        """Return positions for a label beside the arc, those in the middle first."""
        length = math.dist(self.start, self.end) or 1.0
        across, down = (self.start[1] - self.end[1]) / length, (self.end[0] - self.start[0]) / length
        points, half = self.list_points(10), _measure_text(text) / 2
        return [
            (x + side * across * (half + gap), y + side * down * (14 + gap) + 4)
            for x, y in (points[place] for place in (5, 4, 6, 3, 7))
            for gap in (2, 14)
            for side in (-1, 1)
        ]


def _draw_dot(at: tuple[float, float], *, home: bool) -> str:
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="7" fill="{_HOME if home else _CITY}"/>'


def _shorten(name: str) -> str:
    return name if len(name) <= 28 else f"{name[:27]}…"


def _measure_text(text: str) -> float:
    """Estimate the width of a label."""
    return 8 * len(text)


def _beside(at: tuple[float, float], city: str) -> list[tuple[float, float]]:
    """Return positions for the label of a city: above, below, on the right, on the left."""
    (x, y), half = at, _measure_text(_shorten(city)) / 2 + 12
    return [(x, y - 13), (x, y + 23), (x + half, y + 5), (x - half, y + 5)]


def _place_label(
    text: str, spots: Sequence[tuple[float, float]], drawn: list[tuple[float, float]]
) -> tuple[float, float]:
    """Return the first position inside the picture where a label covers least of what is drawn; add the label to it."""
    half = _measure_text(text) / 2

    def count_covered(spot: tuple[float, float]) -> int:
        x, y = spot
        outside = not half < x < _WIDTH - half or not 14 < y < _HEIGHT - 24
        return 1000 * outside + sum(abs(px - x) < half + 5 and -14 < py - y < 7 for px, py in drawn)

    x, y = min(spots, key=count_covered)
    drawn += [(x + share * half, y + down) for share in (-1, -0.5, 0, 0.5, 1) for down in (-11, -4, 3)]
    return x, y


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
svg { width: 100%; height: auto; max-width: 36rem; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th { text-align: left; font-weight: 600; padding-right: .8rem; width: 6rem; }
td:last-child { text-align: right; padding-left: .8rem; white-space: nowrap; width: 6rem; }
th, td { vertical-align: top; padding-top: .15rem; padding-bottom: .15rem; }
td:not(:last-child) { overflow-wrap: anywhere; }
section.day { border-top: 1px solid var(--line); display: grid; grid-template-columns: 1fr 13rem; column-gap: 1.5rem; }
section.day h2 { grid-column: 1 / -1; } section.day table { align-self: start; }
.notes { background: var(--box); border-left: 4px solid var(--bad); padding: .1rem 1rem; margin-bottom: .8rem;
  overflow-wrap: anywhere; }
.bar { background: var(--box); border: 1px solid var(--line); border-radius: 6px; height: 1.1rem; overflow: hidden; }
.bar div { background: var(--good); height: 100%; } .bar div.over { background: var(--bad); }
summary { cursor: pointer; padding: .4rem 0; } svg a { cursor: pointer; }
.good { color: var(--good); } .bad { color: var(--bad); }
@media (max-width: 40rem) { section.day { grid-template-columns: 1fr; } .sights { max-width: 13rem; }
  body { margin: 1rem auto; } th { width: 5.6rem; padding-right: .4rem; } td:last-child { width: 4rem; } }
"""
_KINDS = {"transportation": "journeys", "accommodation": "nights"}


def trip_page(
    plan: Sequence[Day], query: TravelQuery, world: World, *, about: Mapping[str, str] | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> str:  # fmt: skip
    """Write the page of a trip, valid or not.

    Args:
        plan: its days.
        query: the query.
        world: the database.
        about: additional rows for the table, such as who chose.
        notes: lists that stand at the top, such as wishes that were not understood, by their titles.
    """
    days = resolve_plan(plan, query, world)
    lines = bill(days, query)
    title = f"{query.org} to {query.dest}, {len(days)} days"
    parts = [f"<h1>{escape_text(title)}</h1>"]
    if query.text:
        parts.append(f'<p class="soft">{escape_text(query.text)}</p>')
    parts += [
        f'<div class="notes"><p><b>{escape_text(title)}</b></p><ul>'
        f"{''.join(f'<li>{escape_text(text)}</li>' for text in texts)}</ul></div>"
        for title, texts in (notes or {}).items()
        if texts
    ]
    parts.append(trip_map(days, world))
    parts.append(_render_costs(lines, query))
    parts.append('<div class="days">')
    parts += _render_days(days, lines, query)
    parts.append("</div><h2>Is it valid?</h2>")
    parts += [_render_verdict(judge(plan, query, world)) for judge in (strict, official)]
    parts.append(_render_understood(query, about or {}))
    return html_page(title, _STYLE, "\n".join(part for part in parts if part))


def front_page(trips: Sequence[FrontTrip], trip: Trip) -> str:
    """Write the page of a Pareto front: a chart with a point for each trip, and the trips.

    Args:
        trips: the trips of the front.
        trip: the automaton whose trips they are.
    """
    query, world = trip.query, trip.world
    title = f"{query.org} to {query.dest}: {len(trips)} {'trip' if len(trips) == 1 else 'trips'} to choose from"
    parts = [f"<h1>{escape_text(title)}</h1>", f'<p class="soft">{escape_text(query.text)}</p>' if query.text else ""]
    parts.append(
        "<p>No other trip is cheaper than one of these without a lower rating, more travel or fewer sights. Large "
        "points have more sights; the darker a point, the more hours of travel.</p>"
    )
    parts.append(_draw_front(trips))
    for number, one in enumerate(trips, 1):
        days = resolve_plan(days_of(trip, one.word), query, world)
        rendered = "".join(_render_days(days, bill(days, query), query))
        summary = escape_text(_summarize_trip(one))
        parts.append(f'<details><summary>{summary}</summary><div id="trip{number}">{rendered}</div></details>')
    return html_page(title, _STYLE, "\n".join(parts))


def _summarize_trip(one: FrontTrip) -> str:
    hours, minutes = divmod(one.minutes, 60)
    sights = f"{one.sights} {'sight' if one.sights == 1 else 'sights'}"
    return f"{format_dollars(one.cost)}, {one.rating / 10} stars, {hours} h {minutes:02} min of travel, {sights}"


def _draw_front(trips: Sequence[FrontTrip]) -> str:
    """Draw the trips by costs and ratings."""
    ranges = [(min(one), max(one)) for one in zip(*(one[:4] for one in trips), strict=True)] or [(0, 0)] * 4

    def find_share(one: FrontTrip, axis: int) -> float:
        least, most = ranges[axis]
        return (one[axis] - least) / (most - least) if most > least else 0.5

    left, right, top, bottom = 60, _WIDTH - 30, 30, _HEIGHT - 50
    drawn = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="10" fill="{_LAND}"/>']
    for number, one in enumerate(trips, 1):
        x, y = left + (right - left) * find_share(one, 0), bottom - (bottom - top) * find_share(one, 1)
        drawn.append(
            f'<a href="#trip{number}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{5 + 5 * find_share(one, 3):.1f}" '
            f'fill="{_LINE}" fill-opacity="{0.3 + 0.6 * find_share(one, 2):.2f}" stroke="{_INK}">'
            f"<title>{escape(_summarize_trip(one))}</title></circle></a>"
        )
    (cheap, dear), (low, high) = ranges[0], ranges[1]
    drawn += [
        _draw_text(left, bottom + 28, format_dollars(cheap)), _draw_text(right - 10, bottom + 28, format_dollars(dear)),
        _draw_text(30, bottom + 4, f"{low / 10}"), _draw_text(30, top + 4, f"{high / 10}"),
        _draw_text(_WIDTH / 2, bottom + 28, "costs"), _draw_text(30, (top + bottom) / 2, "stars"),
    ]  # fmt: skip
    return _build_svg(_WIDTH, _HEIGHT, drawn, "Trips by costs and ratings")


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
    impossible = set(find_impossible(days))
    for day in days:
        items = [line for line in lines if line.day == day.number]
        on = "" if day.on is None else f", {day.on:%A} {day.on.day} {day.on:%B %Y}"
        head = f"Day {day.number}{on} <small>{escape_text(day.day.current_city)}</small>"
        parts.append(f'<section class="day"><h2>{head}</h2>')
        numbered = list(enumerate(day.sights, 1))
        picture = city_map(day.cities[-1].city if day.cities else "", numbered)
        rows = [
            _render_row(
                CALLED[line.field],
                line.text + NO_TIME * ((line.day, line.field) in impossible),
                format_money(line.total),
            )
            for line in items
        ]
        rows += [
            _render_row("Sight" if number == 1 else "", f"{number}. {stop.named.text}", "") for number, stop in numbered
        ]
        if items:
            rows.append(
                _render_row(
                    "", "all of it" if query.people == 1 else f"for {query.people}", format_money(total_of(items))
                )
            )
        sights = f'<div class="sights">{picture}</div>' if picture else ""
        parts.append(f"<table>{''.join(rows)}</table>{sights}</section>")
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
