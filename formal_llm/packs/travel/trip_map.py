"""Maps of trips, as SVG: the cities with the ways between them, and the attractions of a city.

The position of a city is the middle of its attractions. If a city of the trip has none with a position, the cities
are placed on a ring in the order of the visits, and a note in the picture states it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations, pairwise
from typing import NamedTuple

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.resolved import ResolvedDay, Stop
from formal_llm.packs.travel.rows import Attraction
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
    known = [
        (row.latitude, row.longitude)
        for row in rows
        if row.latitude is not None
        and row.longitude is not None
        and math.isfinite(row.latitude)
        and math.isfinite(row.longitude)
    ]
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
