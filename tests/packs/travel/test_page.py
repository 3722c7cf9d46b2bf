import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

from formal_llm.packs.travel.database import Attraction, World
from formal_llm.packs.travel.fronts import find_front
from formal_llm.packs.travel.page import city_map, find_middle, front_page, trip_map, trip_page
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.trips import shipped, trip

PLAN, QUERY, WORLD = trip("Lindhaven", "Port Serin")


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


def text_of(page):
    return " ".join(" ".join(Tags(page).text).split())


def test_the_page_tells_days_costs_and_verdicts():
    said = text_of(trip_page(PLAN, replace(QUERY, budget=5000), WORLD))
    assert "Lindhaven to Port Serin, 3 days" in said
    assert "Day 2, Friday 11 March 2022" in said
    assert PLAN[1].lunch in said
    assert re.search(r"\$[\d,]+ of \$5,000 for 2", said)
    assert "Yes: the strict evaluator finds nothing wrong." in said


def test_the_bar_of_a_plan_over_its_budget_is_full():
    page = trip_page(PLAN, replace(QUERY, budget=10), WORLD)
    assert '<div class="over" style="width:100.0%">' in page
    assert "too much" in text_of(page)
    assert "No, says the strict evaluator:" in text_of(page)


def test_the_page_stands_alone_and_obeys_nobody():
    evil = '"><script>alert(1)</script><img src=http://x onerror=alert(1)>\u202e'
    days = tuple(
        replace(day, current_city=evil, dinner=f"{evil}, {evil}", accommodation=f"{evil}, B", attraction=f"{evil};")
        for day in PLAN
    )
    query = replace(QUERY, org=evil, dest=evil, text=evil)
    page = trip_page(days, query, WORLD, about={evil: evil}, notes={evil: [evil]})
    tags = Tags(page)
    assert {tag for tag, _ in tags.tags} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "small", "svg", "rect", "defs", "marker",
        "path", "circle", "text", "div", "span", "section", "table", "tr", "th", "td", "ul", "li", "b",
    }  # fmt: skip
    assert not any(name.startswith("on") or name in ("src", "href") for _, found in tags.tags for name in found)
    assert "\u202e" not in page


def svgs(page):
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_the_map_shows_the_cities_where_they_lie():
    page = trip_page(*trip("Port Serin", "Oriel", "Brackenridge", "Alder", mode="Taxi"))
    drawn = svgs(page)[0]
    places = {
        text.text: (float(text.get("x")), float(text.get("y")))
        for text in drawn.iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"Port Serin", "Oriel", "Brackenridge", "Alder", "day 1: taxi", "day 7: taxi"} <= set(places)
    assert places["Port Serin"][1] > places["Oriel"][1]  # it lies to the south
    assert all(0 <= x <= 720 and 0 <= y <= 400 for x, y in places.values())
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == 5  # four ways and the head of an arrow


def test_cities_that_nobody_knows_stand_on_a_ring():
    page = trip_page(PLAN, QUERY, World())
    assert "where these cities lie is not known" in text_of(page)
    assert len(list(svgs(page)[0].iter("{http://www.w3.org/2000/svg}circle"))) == 2


def test_a_plan_of_nonsense_has_a_page():
    for days in ((), (Day(1, ""),), (Day(1, "from A to A", "?"), Day(9, "B", attraction=";;"))):
        assert trip_page(days, replace(QUERY, budget=None, dates=()), WORLD).startswith("<!DOCTYPE html>")


def dots(svg):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', svg)]


def test_the_middle_is_not_moved_by_one_wrong_place():
    rows = [Attraction(str(place), "Ham", place, 1.0) for place in (50.0, 50.2, 50.4, -170.0)]
    assert find_middle(rows) == (50.1, 1.0)
    assert find_middle([Attraction("x", "Ham"), Attraction("y", "Ham", math.nan, 1.0)]) is None


def test_cities_that_lie_close_together_are_drawn_apart():
    plan, query, world = trip("Port Serin", "Oriel", "Brackenridge", "Alder", mode="Taxi")
    drawn = trip_map(resolve_plan(plan, query, world), world)
    places = dots(drawn)
    assert len(places) == 4
    assert min(math.dist(one, other) for one in places for other in places if one != other) > 100
    assert "drawn apart" in drawn


def test_two_cities_in_one_place_are_on_a_ring():
    plan, query, world = trip("Lindhaven", "Port Serin")
    same = [Attraction("x", city, 1.0, 1.0) for city in ("Lindhaven", "Port Serin")]
    drawn = trip_map(resolve_plan(plan, query, world), World(attractions=same))
    assert len(set(dots(drawn))) == 2
    assert "is not known" in drawn


def test_no_cities_no_map():
    assert trip_map((), shipped()) == ""


def test_sights_that_lie_on_each_other_can_be_told_apart():
    plan, query, _ = trip("Lindhaven", "Port Serin")
    rows = [Attraction(name, "Port Serin", 1.0, 1.0) for name in "abc"]
    days = resolve_plan(
        [plan[1].__class__(1, "Port Serin", attraction="a, Port Serin;b, Port Serin;c, Port Serin;")], query,
        World(attractions=rows),
    )  # fmt: skip
    places = dots(city_map("Port Serin", list(enumerate(days[0].sights, 1))))
    assert len(places) == 3
    assert min(math.dist(one, other) for one in places for other in places if one != other) > 20
    assert city_map("Port Serin", [(1, days[0].sights[0])]) == ""


def boxes(svg):
    """The boxes of the labels, and the points of the arrows."""
    found = []
    for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        x, y, half = float(text.get("x")), float(text.get("y")), 3.5 * len(text.text or "")
        found.append((x - half, x + half, y - 10, y + 2))
    points = []
    for numbers in re.findall(r'd="M([\d.-]+) ([\d.-]+)Q([\d.-]+) ([\d.-]+) ([\d.-]+) ([\d.-]+)"', svg):
        x0, y0, cx, cy, x1, y1 = map(float, numbers)
        for step in range(101):
            t = step / 100
            points.append(
                tuple((1 - t) ** 2 * a + 2 * t * (1 - t) * b + t * t * c for a, b, c in ((x0, cx, x1), (y0, cy, y1)))
            )
    return found, points


def test_no_arrow_goes_through_a_label_and_no_label_through_another():
    for cities in (("Port Serin", "Oriel", "Brackenridge", "Alder"), ("Lindhaven", "Port Serin")):
        plan, query, world = trip(*cities, mode="Taxi")
        labels, points = boxes(trip_map(resolve_plan(plan, query, world), world))
        for left, right, top, bottom in labels:
            assert not [(x, y) for x, y in points if left < x < right and top < y < bottom]
        for one, other in combinations(labels, 2):
            assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]


def test_notes_stand_at_the_top():
    page = text_of(trip_page(PLAN, QUERY, WORLD, notes={"Not understood": ["A pool"], "Taken for granted": []}))
    assert page.index("A pool") < page.index("Costs")
    assert "Taken for granted" not in page


def test_a_meal_without_time_is_marked():
    plan, query, world = trip("Lindhaven", "Port Serin", mode="Flight")
    table = next(f"{row.name}, Port Serin" for row in world.restaurants("Port Serin"))
    days = (replace(plan[0], breakfast=table, dinner="-"), *plan[1:])
    assert f"{table} (the journey leaves no time for it)" in text_of(trip_page(days, query, world))


def test_the_front_is_a_chart_with_a_point_for_each_trip():
    query = replace(QUERY, budget=1500, text="<b>cheap</b>")
    front_trip = Trip.from_query(query, WORLD)
    found = find_front(front_trip)
    page = front_page(found, front_trip)
    assert len(found) > 1
    assert len(dots(page.split("</svg>")[0])) == len(found)
    links = {found_["href"] for tag, found_ in Tags(page).tags if tag == "a"}
    assert links == {f"#{found_['id']}" for tag, found_ in Tags(page).tags if tag == "div" and "id" in found_}
    assert "<b>cheap</b>" not in page
    assert "0 trips to choose from" in text_of(front_page([], front_trip))
