from pathlib import Path

from hypothesis import HealthCheck, given, settings

from formal_llm import authored
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.making import make_world, write_folder
from formal_llm.packs.travel.query import CUISINES, HOUSE_RULES
from tests.packs.travel.worlds import rows_of, worlds


def test_what_ships_is_what_the_script_makes(tmp_path: Path) -> None:
    write_folder(make_world(), tmp_path)
    shipped = authored.find("tasks", "travel") / "world"
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert made == {path.relative_to(shipped): path.read_bytes() for path in shipped.rglob("*.*")}
    assert rows_of(World.shipped()) == rows_of(make_world())


def test_another_seed_makes_another_world() -> None:
    assert rows_of(make_world(1)) != rows_of(make_world(2))


def test_every_wish_can_be_met_somewhere() -> None:
    world = make_world()
    for city in world.cities():
        beds, tables, sights = world.accommodations(city), world.restaurants(city), world.attractions(city)
        assert all(any(bed.allows(rule) for bed in beds) for rule in HOUSE_RULES)
        assert {bed.room_type for bed in beds} == {"Entire home/apt", "Private room", "Shared room"}
        assert set(CUISINES) <= {name for table in tables for name in table.cuisines}
        # Names are unique in a city, so that a plan means one place.
        for rows in (beds, tables, sights):
            assert len({row.name for row in rows}) == len(rows)
    assert any(not road.usable for road in world.all_roads()) and any(not road.distance for road in world.all_roads())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(worlds)
def test_what_is_written_is_read_back(tmp_path: Path, world: World) -> None:
    write_folder(world, tmp_path)
    read = World.from_folder(tmp_path)
    assert rows_of(read) == rows_of(world) and all(one.kept for one in read.problems)
