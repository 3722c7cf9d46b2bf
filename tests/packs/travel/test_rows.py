import pytest

from formal_llm.packs.travel.rows import Accommodation, Road, drive_of

BED = Accommodation("A", "B", 100, "Private room", ("No pets", "No smoking"), 2, 3)


@pytest.mark.parametrize(("people", "cost"), [(1, 100), (3, 100), (4, 200), (6, 200), (7, 300)])
def test_so_many_rooms_as_are_needed(people: int, cost: int) -> None:
    assert BED.cost_for(people) == cost


def test_what_a_house_forbids_it_does_not_allow() -> None:
    assert not BED.allows("pets") and BED.allows("parties")
    assert BED.is_of("private room") and BED.is_of("not shared room") and not BED.is_of("entire room")


@pytest.mark.parametrize(("people", "car", "taxi"), [(1, 57, 1144), (4, 57, 1144), (5, 57, 2288), (6, 114, 2288)])
def test_so_many_cars_as_are_needed(people: int, car: int, taxi: int) -> None:
    road = Road("A", "B", "10 hours 55 mins", "1,144 km", 1144.0)
    driven, taken = drive_of(road, "self-driving"), drive_of(road, "taxi")
    assert driven is not None and taken is not None
    assert (driven.cost_for(people), taken.cost_for(people)) == (car, taxi)


@pytest.mark.parametrize("road", [Road("A", "B"), Road("A", "B", "1 day 2 hours", "2,300 km", 2300.0)])
def test_a_road_without_a_length_or_of_more_than_a_day_is_none(road: Road) -> None:
    assert drive_of(road, "taxi") is None
