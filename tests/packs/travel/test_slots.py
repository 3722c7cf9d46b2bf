from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.travel.routes import limit_stays, list_shapes
from formal_llm.packs.travel.slots import MEALS, find_beginning, left_of, list_slots

sizes = st.sampled_from([(2, 1), (3, 1), (5, 2), (7, 3), (4, 3)])


@given(sizes, st.booleans())
def test_every_whole_day_has_three_meals_and_a_sight_and_every_stay_one_bed(size, every_meal):
    days, cities = size
    for shape in list_shapes(days, cities, every_meal=every_meal):
        todo = list_slots(shape)
        assert [slot.stay for slot in todo if slot.kind == "bed"] == list(range(cities))
        for number, stay in enumerate(shape):
            for day in range(stay.arrival + 1, stay.leaving):
                there = [slot.kind for slot in todo if slot.day == day and slot.must and slot.stay == number]
                assert sorted(there) == sorted([*MEALS, "sight"])
        meals = [(slot.day, slot.kind) for slot in todo if slot.kind in MEALS]
        assert len(set(meals)) == len(meals)  # no two at the same time


@given(sizes, st.booleans())
def test_all_trips_of_a_kind_have_as_many_slots(size, every_meal):
    assert len({len(list_slots(shape)) for shape in list_shapes(*size, every_meal=every_meal)}) == 1


def test_what_is_left_is_counted_in_the_stay():
    (shape,) = list_shapes(3, 1, every_meal=False)
    assert [slot.kind for slot in list_slots(shape)] == [
        "bed", "sight", "dinner", "breakfast", "sight", "lunch", "dinner", "sight", "sight", "breakfast", "sight",
    ]  # fmt: skip
    assert left_of(shape, 1) == (3, 2, 1)
    assert left_of(shape, 5) == (2, 1, 0)
    assert find_beginning(shape, 5) == (0, 0)


def test_what_the_ways_leave_no_time_for_is_not_open():
    (shape,) = list_shapes(3, 1, every_meal=False)
    late = limit_stays(limit_stays(shape, 0, (0, 0, 0, 1)), 1, (1, 0, 0, 0))
    closed = [(slot.day, slot.kind) for slot in list_slots(late) if not slot.open]
    assert closed == [(0, "dinner"), (2, "sight")]
    assert left_of(late, 1) == (3, 1, 1)
