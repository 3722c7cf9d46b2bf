"""Models that are loaded once and share a limited amount of memory.

A pool knows how each model is loaded and how large it is. Users request models from the pool; a model stays while it is
in use, and when memory is needed, the least recently used models are evicted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

M = TypeVar("M")


@dataclass(slots=True)
class _LoadedModel(Generic[M]):
    load: Callable[[], M]
    size: int | Callable[[M], int]
    enter: Callable[[M], object] | None
    leave: Callable[[M], object] | None
    loaded: tuple[M] | None = None
    bytes: int = 0
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ModelPool(Generic[M]):
    """Models of one class under a memory budget. Thread-safe.

    Args:
        budget: the maximum total bytes of the models in memory; None for no limit.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._models: dict[str, _LoadedModel[M]] = {}
        self._inside: OrderedDict[str, None] = OrderedDict()  # models that take memory now, least recently used first
        self._taken = 0
        self._changed = threading.Condition()

    def add(
        self,
        name: str,
        load: Callable[[], M],
        *,
        size: int | Callable[[M], int],
        enter: Callable[[M], object] | None = None,
        leave: Callable[[M], object] | None = None,
    ) -> None:
        """Add a model to the pool.

        Args:
            name: its name.
            load: loads the model; called at its first use, and again after it was evicted.
            size: the number of bytes it takes, or a function of the loaded model that returns it.
            enter: called with the model when it moves to where memory is scarce (the device).
            leave: called with the model when it must leave it. A model with ``enter`` or ``leave`` is not reloaded: it
                waits outside until it enters again. One without both is dropped.

        Raises:
            ValueError: there is already a model of that name.
        """
        with self._changed:
            if name in self._models:
                raise ValueError(f"the pool has a model {name!r} already")
            self._models[name] = _LoadedModel(load, size, enter, leave)

    @contextmanager
    def use(self, name: str) -> Iterator[M]:
        """Provide a model, which stays while it is used. Wait if models in use leave no room for it.

        A user of one model should not request a second: two who do so may wait for each other.

        Raises:
            KeyError: the pool has no such model.
            MemoryError: the model is larger than the whole budget.
        """
        entry = self._models[name]
        with entry.lock:  # one thread brings a model in; others that need it wait
            with self._changed:
                inside = name in self._inside
                if inside:
                    entry.users += 1
                    self._inside.move_to_end(name)
            if not inside:
                self._bring_in(name, entry)
            assert entry.loaded is not None
            (model,) = entry.loaded
        try:
            yield model
        finally:
            with self._changed:
                entry.users -= 1
                self._changed.notify_all()

    @property
    def inside(self) -> tuple[str, ...]:
        """The models that take memory now, the least recently used first."""
        with self._changed:
            return tuple(self._inside)

    def clear(self) -> None:
        """Evict every model that is not in use."""
        with self._changed:
            for name in [name for name in self._inside if not self._models[name].users]:
                self._evict_model(name)

    def _bring_in(self, name: str, entry: _LoadedModel[M]) -> None:
        reserved = 0
        try:
            if isinstance(entry.size, int):
                self._make_room(name, entry.size)
                reserved = entry.bytes = entry.size
            (model,) = entry.loaded = entry.loaded or (entry.load(),)
            if not isinstance(entry.size, int):
                entry.bytes = entry.size(model)
                self._make_room(name, entry.bytes)
                reserved = entry.bytes
            if entry.enter is not None:
                entry.enter(model)
        except BaseException:
            if entry.enter is None and entry.leave is None:
                entry.loaded = None
            with self._changed:
                self._taken -= reserved
                self._changed.notify_all()
            raise
        with self._changed:
            entry.users += 1
            self._inside[name] = None

    def _make_room(self, name: str, size: int) -> None:
        """Reserve ``size`` bytes of the budget, evicting the least recently used models."""
        with self._changed:
            if self.budget is not None and size > self.budget:
                raise MemoryError(f"the model {name} takes {size:,} bytes; the budget of the pool is {self.budget:,}")
            while self.budget is not None and self._taken + size > self.budget:
                idle = next((other for other in self._inside if not self._models[other].users), None)
                if idle is None:
                    self._changed.wait()
                else:
                    self._evict_model(idle)
            self._taken += size

    def _evict_model(self, name: str) -> None:
        entry = self._models[name]
        del self._inside[name]
        self._taken -= entry.bytes
        if entry.leave is not None and entry.loaded is not None:
            entry.leave(*entry.loaded)
        if entry.enter is None and entry.leave is None:
            entry.loaded = None
        self._changed.notify_all()
