from pathlib import Path

from hypothesis import HealthCheck, given, settings

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.writing import write_folder
from tests.packs.travel.worlds import rows_of, worlds


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(worlds)
def test_what_is_written_is_read_back(tmp_path: Path, world: World) -> None:
    write_folder(world, tmp_path)
    read = World.from_folder(tmp_path)
    assert rows_of(read) == rows_of(world) and all(one.kept for one in read.problems)
