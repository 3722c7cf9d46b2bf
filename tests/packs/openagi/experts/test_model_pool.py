"""Models are loaded once, and leave by least recent use."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from formal_llm.packs.openagi.experts.model_pool import ModelPool


class Fake:
    """A model, and where it is."""

    def __init__(self, name: str, size: int, events: list[str]) -> None:
        self.name, self.size, self.events = name, size, events
        events.append(f"load {name}")

    def enter(self) -> None:
        self.events.append(f"enter {self.name}")

    def leave(self) -> None:
        self.events.append(f"leave {self.name}")


def pool_of(budget: int | None, sizes: dict[str, int], *, moved: bool = False) -> tuple[ModelPool[Fake], list[str]]:
    events: list[str] = []
    pool: ModelPool[Fake] = ModelPool(budget)
    for name, size in sizes.items():
        moves: dict[str, Any] = {"enter": Fake.enter, "leave": Fake.leave} if moved else {}
        pool.add(name, lambda name=name, size=size: Fake(name, size, events), size=size, **moves)
    return pool, events


def use(pool: ModelPool[Fake], *names: str) -> None:
    for name in names:
        with pool.use(name) as model:
            assert model.name == name


def test_loaded_once() -> None:
    pool, events = pool_of(None, {"a": 10, "b": 10})
    use(pool, "a", "b", "a", "b")
    assert events == ["load a", "load b"]
    with pytest.raises(ValueError, match="already"):
        pool.add("a", object, size=1)
    with pytest.raises(KeyError), pool.use("c"):
        pass


def test_those_used_longest_ago_leave_first() -> None:
    pool, events = pool_of(20, {"a": 10, "b": 10, "c": 10})
    use(pool, "a", "b", "a", "c")
    assert pool.inside == ("a", "c")
    use(pool, "b")
    assert pool.inside == ("c", "b")
    assert events == ["load a", "load b", "load c", "load b"]
    pool.clear()
    assert pool.inside == ()


def test_models_that_move_wait_outside() -> None:
    pool, events = pool_of(10, {"a": 10, "b": 10}, moved=True)
    use(pool, "a", "b", "a")
    assert events == ["load a", "enter a", "leave a", "load b", "enter b", "leave b", "enter a"]


def test_sizes_that_are_known_after_loading() -> None:
    events: list[str] = []
    pool = ModelPool(20)
    for name in "abc":
        pool.add(name, lambda name=name: Fake(name, 10, events), size=lambda model: model.size)
    use(pool, "a", "b", "c", "a")
    assert events == ["load a", "load b", "load c", "load a"]


def test_too_large_and_failing_to_load() -> None:
    pool, _ = pool_of(10, {"a": 11, "b": 4})
    with pytest.raises(MemoryError, match="11 bytes"), pool.use("a"):
        pass
    calls = iter([RuntimeError("no file"), "model"])

    def load() -> Any:
        given = next(calls)
        if isinstance(given, Exception):
            raise given
        return given

    pool.add("c", load, size=10)
    with pytest.raises(RuntimeError, match="no file"), pool.use("c"):
        pass
    with pool.use("c") as model:
        assert model == "model"
    use(pool, "b")


def test_a_model_in_use_stays() -> None:
    pool, _ = pool_of(10, {"a": 10, "b": 10})
    order: list[str] = []

    def other() -> None:
        with pool.use("b"):
            order.append("b")

    thread = threading.Thread(target=other)
    waits, wait = threading.Event(), pool._changed.wait

    def noted(timeout: float | None = None) -> bool:
        waits.set()
        return wait(timeout)

    pool._changed.wait = noted  # type: ignore[method-assign]
    with pool.use("a"):
        thread.start()
        assert waits.wait(20)  # b is wanted, and there is no room
        assert pool.inside == ("a",)
        order.append("a")
    thread.join(20)
    assert order == ["a", "b"]


def test_many_threads_never_pass_the_budget() -> None:
    sizes = {f"m{n}": 2 + n for n in range(6)}
    pool = ModelPool(12)
    alive: dict[str, int] = {}
    most = 0
    lock = threading.Lock()

    def enter(name: str) -> None:
        nonlocal most
        with lock:
            alive[name] = sizes[name]
            most = max(most, sum(alive.values()))

    def leave(name: str) -> None:
        with lock:
            del alive[name]

    for name, size in sizes.items():
        pool.add(name, lambda name=name: name, size=size, enter=enter, leave=leave)
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            name = rng.choice(list(sizes))
            with pool.use(name) as model:
                time.sleep(0)  # let others go on
                if model != name or name not in alive:
                    wrong.append(name)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert wrong == []
    assert most <= 12
