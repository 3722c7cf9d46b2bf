"""Loading and working at the same time: which of it goes together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets models work side by side, and a model be loaded only while none works.

    transformers and torch keep in the whole process what belongs to one loading: which type numbers have, whether
    weights are drawn. Two loadings at once leave weights out, and a model at work meanwhile may get numbers of another
    type.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working = 0
        self._waiting = 0
        self._loading = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Wait until nothing is loaded or waits to be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._loading and not self._waiting)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wait until nothing works and nothing else is loaded."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._loading and not self._working)
                self._loading = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._loading = False
                self._changed.notify_all()


#: One for the whole process.
GATE = Gate()
