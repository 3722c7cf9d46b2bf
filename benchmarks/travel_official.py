"""Our official evaluator beside the published scripts: the single checks of mutated plans that differ.

Called by ``travel.py``. The scripts are run unchanged in a temporary copy (they need pandas and tqdm), with the flights
of all references as their table of flights; where one breaks off, its check counts as failed. They look only at the
rows of the cities that a plan names, since whole tables take seconds for each plan.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import importlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

from formal_llm.packs.travel.benchmark.cases import read_cases
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import FILES, read_folder
from formal_llm.packs.travel.official import Commit, official
from formal_llm.packs.travel.plan_days import FIELDS, MEALS, read_plan
from formal_llm.packs.travel.query import CUISINES, HOUSE_RULES, ROOM_TYPES, TRANSPORTATION, query_of
from formal_llm.packs.travel.reference import read_reference
from formal_llm.packs.travel.rows import Flight

COMMONSENSE = {
    "is_reasonable_visiting_city": "Reasonable City Route", "is_valid_restaurants": "Diverse Restaurants",
    "is_valid_attractions": "Diverse Attractions", "is_valid_accommodaton": "Minimum Nights Stay",
    "is_valid_transportation": "Non-conf. Transportation", "is_not_absent": "Complete Information",
    "is_valid_information_in_current_city": "Within Current City", "is_valid_information_in_sandbox": "Within Sandbox",
}  # fmt: skip
HARD = {
    "is_valid_cuisine": "Cuisine", "is_valid_room_rule": "Room Rule", "is_valid_transportation": "Transportation",
    "is_valid_room_type": "Room Type",
}  # fmt: skip
TABLES = {"restaurants": "City", "attractions": "City", "accommodation": "city"}
NO_DAY = "You don't need to fill in the information for this or later days."
Day = dict[str, Any]


class Published:
    """The published scripts in a temporary folder, with the tables that they read."""

    def __init__(self, scripts: Path, data: Path, folder: Path, flights: Sequence[Flight]) -> None:
        for name in ("evaluation", "tools", "utils"):
            shutil.copytree(scripts / name, folder / name)
        for place in FILES.values():
            source = next((data / "database").rglob(Path(place).name), None)
            (folder / "database" / place).parent.mkdir(parents=True, exist_ok=True)
            if source is not None:  # the scripts stop at an empty last line
                (folder / "database" / place).write_text(source.read_text(encoding="utf-8").rstrip("\n"), "utf-8")
        with (folder / "database" / FILES["flights"]).open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([
                "Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName",
                "DestCityName", "Distance",
            ])  # fmt: skip
            rows.writerows(
                (one.number, one.price, one.departure, one.arrival, "x", one.day, one.origin, one.destination, 0)
                for one in flights
            )
        sys.modules.setdefault("gradio", ModuleType("gradio"))
        here, paths, known = Path.cwd(), list(sys.path), set(sys.modules)
        sys.path[:0] = [str(folder), str(folder / "evaluation")]
        os.chdir(folder / "evaluation")
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
                self._modules = [importlib.import_module(f"{kind}_constraint") for kind in ("commonsense", "hard")]
        finally:
            os.chdir(here)
            sys.path[:] = paths
            for name in set(sys.modules) - known:
                if name.partition(".")[0] in ("tools", "utils", "commonsense_constraint", "hard_constraint"):
                    del sys.modules[name]
        self._tables = [(getattr(one, name), city) for one in self._modules for name, city in TABLES.items()]
        self._whole = [table.data for table, _ in self._tables]
        self._by_city = [table.groupby(city) for table, (_, city) in zip(self._whole, self._tables, strict=True)]
        cities = {name for groups in self._by_city for name in groups.groups}
        self._cities = sorted(cities)

    def judge(self, fields: dict[str, Any], plan: list[Day]) -> dict[str, bool | None]:
        """Return for each check whether the plan passes; None if the query does not ask for it."""
        text = json.dumps(plan, ensure_ascii=False)
        named = [city for city in self._cities if city in text]
        for (table, column), whole in zip(self._tables, self._whole, strict=True):
            table.data = whole[whole[column].isin(named)]
        with contextlib.redirect_stdout(io.StringIO()):
            commonsense, hard = self._modules
            found = {check: _passes(getattr(commonsense, name), fields, plan) for name, check in COMMONSENSE.items()}
            if found["Complete Information"] and found["Within Sandbox"]:
                found |= {check: _passes(getattr(hard, name), fields, plan) for name, check in HARD.items()}
                found["Budget"] = _passes(lambda *one: (hard.get_total_cost(*one) <= fields["budget"],), fields, plan)
        return found


def _passes(check: Callable[..., Sequence[object]], fields: dict[str, Any], plan: list[Day]) -> bool | None:
    try:
        result = check(fields, plan)[0]
    except Exception:  # where a script stops is the question
        return False
    return None if result is None else bool(result)


class Mutator:
    """Changes plans and their queries at random.

    Args:
        plans: the plans whose texts are used, too.
        rng: the source of chance.
    """

    def __init__(self, plans: Sequence[list[Day]], rng: random.Random) -> None:
        self._rng = rng
        self._texts = {name: [str(day[name]) for plan in plans for day in plan] for name in FIELDS}

    def change_query(self, fields: dict[str, Any]) -> None:
        """Change the wishes, the budget or the people of a query."""
        rng, wishes = self._rng, fields["local_constraint"]
        wishes["house rule"] = rng.choice((None, *HOUSE_RULES, "parties"))
        wishes["room type"] = rng.choice((None, *ROOM_TYPES))
        wishes["transportation"] = rng.choice((None, *TRANSPORTATION))
        wishes["cuisine"] = rng.sample(CUISINES, rng.choice((1, 1, 2, 3))) if rng.random() < 0.6 else None
        fields["budget"] = int(fields["budget"] * rng.choice((0.2, 0.5, 0.8, 1, 3)))
        fields["people_number"] = rng.randint(1, 8)

    def change_plan(self, plan: list[Day]) -> None:
        """Make one to three changes."""
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            self._rng.choice((self._change_text, self._change_text, self._change_text, self._change_days))(plan)

    def _change_days(self, plan: list[Day]) -> None:
        rng = self._rng
        place = rng.randrange(len(plan))
        match rng.randrange(8):
            case 0 if len(plan) > 1:
                del plan[place]
            case 1:
                plan.insert(place, copy.deepcopy(plan[place]))
            case 2:
                other = rng.randrange(len(plan))
                plan[place], plan[other] = plan[other], plan[place]
            case 3:
                plan.append({})
            case 4:
                plan.insert(place, {})
            case 5 if plan[place]:
                plan[place]["note"] = "x"
                plan[place].pop("days", None)
            case 6 if plan[place]:
                plan[place]["current_city"] = NO_DAY
            case _ if plan[place]:
                plan[place].update(dict.fromkeys(FIELDS[1:], rng.choice(("-", "", None))))

    def _change_text(self, plan: list[Day]) -> None:
        rng = self._rng
        day = rng.choice([day for day in plan if day] or [{"current_city": "x"}])
        name = rng.choice((*FIELDS, "transportation", "current_city"))
        text = str(day.get(name) or "-")
        match rng.randrange(16):
            case 0:
                day[name] = rng.choice(("-", "", None))
            case 1:
                day.pop(name, None)
            case 2 | 3:
                day[name] = rng.choice(self._texts[name])
            case 4:
                day[name] = rng.choice(self._texts[rng.choice(MEALS)])
            case 5:
                day[name] = rng.choice((text.lower(), text.upper(), f" {text}", f"{text} ", text.replace(", ", ",")))
            case 6:
                cut = rng.randrange(len(text) + 1)
                day[name] = rng.choice((text[cut:], text[:cut], text[:cut] + text[cut + 1 :]))
            case 7:
                day[name] = rng.choice(
                    (f"{text}(Texas)", f"{text}(", text.replace(",", "(x),", 1), f"{text};", 2 * text)
                )
            case 8:
                day[name] = text.replace(";", "") if rng.random() < 0.5 else f"{text};{text};"
            case 9:
                day[name] = rng.choice(
                    (f", {text}", "Soup", f"e, {text.rpartition(', ')[2]}", f"Nowhere, {text}", ", ")
                )
            case 10:
                day[name] = text.replace(" to ", rng.choice((" ", "to ", " to to "))).replace(
                    "from ", rng.choice(("", "from ", "From ", "from  from "))
                )
            case _:
                self._change_way(day)

    def _change_way(self, day: Day) -> None:
        """Change a journey, which needs the most care."""
        rng, text = self._rng, str(day.get("transportation") or "-")
        city = str(day.get("current_city") or "-")
        way = text[text.find("from ") :].split(",")[0] if "from " in text else city
        number = rng.choice(self._texts["transportation"]).partition("Number: ")[2].split(",")[0]
        modes = (
            "Self-driving", "Taxi", "self-driving", "Drive", "Flight", "Flight Number: ", f"Flight Number: {number}",
            f"flight number: {number}", f"Flight Number:{number}", "Self-driving by taxi", "taxi",
            f"Flight Number: {number}Flight Number: {number}", f"Flight Number: {number}, Taxi",
        )  # fmt: skip
        there = rng.choice((way, city, way, "from Dallas", f"from {' to '.join(way[5:].split(' to ')[::-1])}", ""))
        day["transportation"] = rng.choice((f"{rng.choice(modes)}, {there}, cost: 4", f"{there} {rng.choice(modes)}"))
        if rng.random() < 0.2:
            day["current_city"] = rng.choice(
                (there, way.partition(" to ")[2], f"{city}(Ohio)", there.replace("from ", ""))
            )


def compare(scripts: Path, data: Path, count: int, seed: int) -> Counter[str]:
    """Print the differences of single checks; return how many checks, failures and differences there were."""
    cases = [case for case in read_cases(data) if case.query is not None and case.annotated]
    folder = read_folder(data / "database")
    flights = [one for case in cases for one in read_reference(case.reference).flights]
    flights.append(Flight("F1", "Dallas", "Tucson", date(2022, 3, 1), "08:00", "10:00", 100))
    places = folder.accommodations, folder.restaurants, folder.attractions
    world = World(flights, folder.roads, *places, folder.cities)
    rng = random.Random(seed)
    given = [(case.query.to_json(), [day.to_json() for day in case.annotated]) for case in cases if case.query]
    mutator = Mutator([plan for _, plan in given], rng)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        published = Published(scripts, data, Path(temporary), flights)
        commit: Commit = "da7c1d4" if _knows_parties(scripts) else "before-ed379c4"
        for number in range(count):
            fields, plan = copy.deepcopy(given[number % len(given)])
            if rng.random() < 0.7:
                mutator.change_query(fields)
            if number >= len(given) and rng.random() < 0.9:
                mutator.change_plan(plan)
            verdict = official(read_plan(plan), query_of(fields), world, commit)
            judged = published.judge(fields, plan)
            counts["plans"] += 1
            counts["judged whole"] += "Budget" in judged
            for check, passed in judged.items():
                counts["checks"] += 1
                counts[f"failed, {check}"] += passed is False
                if {"passed": True, "failed": False}.get(verdict.states[check]) != passed:
                    counts["different"] += 1
                    print(number, check, f"published: {passed}, ours: {verdict.states[check]}", json.dumps(plan))
    print(f"{commit}: {counts['different']} differences in {counts['checks']:,} checks of {counts['plans']:,} plans")
    return counts


def _knows_parties(scripts: Path) -> bool:
    return "'parties'" in (scripts / "evaluation" / "hard_constraint.py").read_text(encoding="utf-8")
