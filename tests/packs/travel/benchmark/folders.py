"""A folder of data as the published one: two cases in the shipped world, with what somebody collected for them."""

from __future__ import annotations

import json
from pathlib import Path

from formal_llm.packs.travel.plan_days import to_json
from tests.packs.travel.trips import shipped, trip

SENTENCES = (
    "Please plan a trip for 2 people from Lindhaven to Port Serin for 3 days, from March 10th to March 12th, 2022, "
    "with a budget of $9,000.",
    "Please plan a trip for 2 people from Port Serin to Oriel for 3 days, from March 10th to March 12th, 2022, with a "
    "budget of $9,000.",
)


def folder(path: Path) -> Path:
    lines = []
    for text, cities in zip(SENTENCES, (("Lindhaven", "Port Serin"), ("Port Serin", "Oriel")), strict=True):
        plan, query, _ = trip(*cities)
        fields = {**query.to_json(), "budget": 9000, "query": text, "annotated_plan": to_json(plan)}
        lines.append(json.dumps({**fields, "reference_information": reference(*cities)}))
    (path / "train.jsonl").write_text("\n".join(lines) + "\n")
    return path


def reference(home: str, city: str) -> dict[str, object]:
    world = shipped()
    drive = world.road(home, city)
    back = world.road(city, home)
    return {
        f"Attractions in {city}": [
            {"Name": one.name, "Latitude": one.latitude, "Longitude": one.longitude, "City": city}
            for one in world.attractions(city)
        ],
        f"Restaurants in {city}": [
            {"Name": one.name, "Average Cost": one.cost, "Cuisines": ", ".join(one.cuisines),
             "Aggregate Rating": one.rating, "City": city}
            for one in world.restaurants(city)
        ],
        f"Accommodations in {city}": [
            {"NAME": one.name, "price": float(one.price), "room type": one.room_type,
             "house_rules": " & ".join(one.house_rules), "minimum nights": one.minimum_nights,
             "maximum occupancy": one.maximum_occupancy, "review rate number": one.rating, "city": city}
            for one in world.accommodations(city)
        ],
        f"Flight from {home} to {city} on 2022-03-10": f"There is no flight from {home} to {city} on 2022-03-10.",
        f"Self-driving from {home} to {city}": (
            f"self-driving, from {home} to {city}, duration: {drive.duration}, distance: {drive.distance}, cost: 1"
        ),
        f"Self-driving from {city} to {home}": (
            f"self-driving, from {city} to {home}, duration: {back.duration}, distance: {back.distance}, cost: 1"
        ),
    }  # fmt: skip
