"""Where the lines of many tasks begin in a file, and what became of each task: a few bytes for a task."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

#: What became of a task, as its line says; 0 stands for a task without a line.
PLANNED, FAILED, STOPPED = 1, 2, 3
STATUS = {"planned": PLANNED, "failed": FAILED, "stopped": STOPPED}
#: More tasks than anybody has in one file.
MOST = 1 << 30


class LinePlaces:
    """The places of lines in a file, by the index of their task.

    Attributes:
        counts: how many tasks there are of each status.
        status: what became of each task, by index.
    """

    def __init__(self) -> None:
        self.status = bytearray()
        self.counts = [0] * 4
        self._places = array("q")

    def record_line(self, index: int, status: int, place: int) -> int:
        """Keep in mind where the line of a task begins, and what became of it; what had become of it before."""
        if index >= len(self._places):
            more = index + 1 - len(self._places)
            self._places.extend([-1] * more)
            self.status.extend(bytes(more))
        before = self.status[index]
        self.counts[before] -= bool(before)
        self.counts[status] += 1
        self._places[index], self.status[index] = place, status
        return before

    def __getitem__(self, index: int) -> int:
        """Where the line of a task begins."""
        return self._places[index]

    def has_status(self, index: object, status: tuple[int, ...]) -> bool:
        """Whether a task has one of these."""
        return isinstance(index, int) and 0 <= index < len(self._places) and self.status[index] in status

    def list_tasks(self, *status: int) -> Iterator[int]:
        """The tasks that have one of these, in their order."""
        return (index for index, one in enumerate(self.status) if one in status)
