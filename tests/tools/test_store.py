"""Results by their keys: in memory by least recent use, on disk, and never somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import CFG, Planner
from formal_llm.tools import TEXT, DiskCache, Executor, Kind, Tool, Toolkit, Value
from formal_llm.tools.store import Store, step_key

CHAIN = CFG.from_string("%order prefix\nT -> upper doc")


@pytest.mark.parametrize("content", [b"\xff\xfe not utf-8", b"\x80\x04K\x01."])
def test_an_entry_of_somebody_else_is_computed_anew(tmp_path: Path, content: bytes) -> None:
    kit = Toolkit([Tool("upper", (TEXT,), TEXT, str.upper, version="1", pure=True)])
    plan = Planner(CHAIN).plan("t")
    Executor(kit, cache=tmp_path).run(plan, {"doc": "a"})
    (file,) = tmp_path.rglob("*.value")
    cache = DiskCache(tmp_path)
    cache.put(file.stem, content)
    executor = Executor(kit, cache=tmp_path)
    assert executor.run(plan, {"doc": "a"}).output == "A"
    assert executor.stats.executed == 1


def test_the_key_is_the_tool_its_version_and_the_content(tmp_path: Path) -> None:
    plan = Planner(CHAIN).plan("t")

    def executed(doc: str, version: str) -> int:
        executor = Executor(
            Toolkit([Tool("upper", (TEXT,), TEXT, str.upper, version=version, pure=True)]), cache=tmp_path
        )
        executor.run(plan, {"doc": doc})
        return executor.stats.executed

    assert [executed("a", "1"), executed("a", "1"), executed("b", "1"), executed("a", "2"), executed("b", "1")] == [
        1, 0, 1, 1, 0,
    ]  # fmt: skip


def test_memory_goes_by_least_recent_use() -> None:
    plan = Planner(CHAIN).plan("t")
    executor = Executor(Toolkit([Tool("upper", (TEXT,), TEXT, str.upper, version="1", pure=True)]), memory=900)
    for text in ("a" * 50, "b" * 50, "a" * 50, "c" * 50, "d" * 50, "a" * 50):
        executor.run(plan, {"doc": text})
    assert executor.stats.executed == 4
    executor.run(plan, {"doc": "b" * 50})
    assert executor.stats.executed == 5


def test_what_cannot_be_read_from_disk_is_not_known(tmp_path: Path) -> None:
    def load(data: bytes) -> bytes:
        if data == b"large":
            raise MemoryError
        if data == b"odd":
            raise ZeroDivisionError  # a kind may raise anything for bytes that are no value
        return data

    kind = Kind("blob", bytes, bytes, load)
    cache = DiskCache(tmp_path)
    store = Store(1000, cache)
    for payload, stays in ((b"odd", False), (b"large", True)):
        cache.put("k", payload)
        assert store.find_result("k", kind) is None
        assert (cache.get("k") is not None) == stays
    cache.put("k", b"good")
    found = store.find_result("k", kind)
    assert found is not None
    assert found.get() == b"good"
    assert (store.stats.from_disk, store.stats.from_memory) == (1, 0)
    assert store.find_result("k", kind) is found
    assert store.stats.from_memory == 1


def test_the_key_depends_on_tool_version_kind_and_contents() -> None:
    versions = ("a", "1"), ("b", "1"), ("a", "2")
    tools = [Tool(name, (TEXT,), TEXT, str, version=version, pure=True) for name, version in versions]
    rows = [[Value(TEXT, "x")], [Value(TEXT, "y")], [Value(TEXT, "x"), Value(TEXT, "y")]]
    assert len({step_key(tool, row, {}) for tool in tools for row in rows}) == 9
    assert step_key(tools[0], rows[0], {}) == step_key(tools[0], [Value(TEXT, "x")], {})
