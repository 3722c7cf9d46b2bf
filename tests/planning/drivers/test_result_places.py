"""Where lines begin: against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.planning.drivers.result_places import FAILED, PLANNED, STATUS, STOPPED, LinePlaces
from tests.strategies import examples

noted = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([*STATUS.values()]), st.integers(0, 1 << 50)))


@given(noted)
@examples(60)
def test_the_last_that_was_noted_counts(lines: list[tuple[int, int, int]]) -> None:
    places, known = LinePlaces(), dict[int, tuple[int, int]]()
    for index, status, place in lines:
        assert places.record_line(index, status, place) == known.get(index, (0, 0))[0]
        known[index] = status, place
    for status in (PLANNED, FAILED, STOPPED):
        assert list(places.list_tasks(status)) == sorted(index for index, (one, _) in known.items() if one == status)
        assert places.counts[status] == len(list(places.list_tasks(status)))
    assert all(places[index] == place for index, (_, place) in known.items())
    assert [places.has_status(index, (PLANNED, FAILED)) for index in range(-1, 32)] == [
        known.get(index, (0, 0))[0] in (PLANNED, FAILED) for index in range(-1, 32)
    ]
    assert not places.has_status("1", (PLANNED, FAILED, STOPPED))
