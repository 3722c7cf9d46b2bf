"""A journal of paid answers: an answer is on disk before the next question of its plan, or of its agent, is asked.

It is ``FILE.journal`` beside the results file of a run, with a line of JSON for each answer that took a request. A run
that was killed asks only what was in flight again: the next one takes the answers of unfinished tasks from the journal,
each for the question that it was given to. When all tasks are done, the journal is removed.

A line is written at once, so it survives the end of the process. It is on the disk itself after :data:`SYNCED` seconds
at most; the answers that come in the meantime share one ``fsync``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from formal_llm.authored.files import parse_json
from formal_llm.errors import InvalidAnswer, ResultsError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data, usage_from_data, usage_to_data
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.json_lines import open_exclusively, replace_exclusively, write_line

#: The seconds within which what was written is on the disk.
SYNCED = 0.05
_FORMAT = "formal_llm.journal/1"
_BUSY = "another run is writing this file; wait for it, or give another file of results"


class AnswerJournal:
    """The answers of a run, by task; one process writes it.

    Args:
        path: the file; created if it is missing. A last line that was only half written is dropped.
        run: the identifier of the run (:func:`~formal_llm.planning.drivers.results.run_of`).
        is_done: whether a task is done; its answers are no longer needed.
        paid_only: whether answers that took no request are left out.

    Raises:
        ResultsError: another run is writing the file, or it belongs to another run.
    """

    def __init__(
        self,
        path: str | Path,
        run: str,
        is_done: Callable[[int], bool] = lambda _: False,
        *,
        paid_only: bool = True,
    ) -> None:
        self.path = Path(path)
        self._paid_only = paid_only
        self._run, self._is_done = run, is_done
        self._waiting: dict[int, dict[str, deque[Answer | InvalidAnswer]]] = {}
        self._file = open_exclusively(self.path, what="journal", busy=_BUSY)
        try:
            self._compact_file(load=True)
        except BaseException:
            self._file.close()
            raise
        self._written, self._closed = threading.Event(), threading.Event()
        self._syncing = threading.Thread(target=self._sync_file, name="formal-llm journal", daemon=True)
        self._syncing.start()

    def take(self, index: int, question: Question, *, legal: bool = False) -> Answer | InvalidAnswer | None:
        """Return the next answer that a question of a task got in an earlier run, once; None if there is none.

        With ``legal``, answers that were not legal are skipped, since their usage is on record elsewhere.
        """
        known = self._waiting.get(index)
        answers = None if known is None else known.get(_hash_question(question))
        while answers:
            answer = answers.popleft()
            if not legal or isinstance(answer, Answer):
                return answer
        return None

    def record(self, index: int, question: Question, given: Answer | Exception) -> None:
        """Write an answer, legal or not; anything else is ignored.

        Raises:
            ResultsError: it could not be written whole; the file is as it was.
        """
        if not isinstance(given, (Answer, InvalidAnswer)):
            return
        usage = given.usage or TokenUsage()
        if self._paid_only and not usage.requests:
            return
        line: dict[str, object] = {"format": _FORMAT, "run": self._run, "index": index}
        line["question"] = _hash_question(question)
        if isinstance(given, Answer):
            line["answer"] = answer_to_data(given)
        else:
            line |= {"problem": given.problem, "transcript": [*map(list, given.transcript)]}
            line["usage"] = usage_to_data(usage)
        write_line(self._file, self.path, line, f"an answer for task {index}")
        self._written.set()

    def close(self) -> None:
        """Drop the answers of tasks that are done; without others the file is removed."""
        if self._file.closed:
            return
        self._closed.set()
        self._written.set()
        self._syncing.join()
        try:
            if self._compact_file():
                os.fsync(self._file.fileno())
            else:
                self.path.unlink()
        finally:
            self._file.close()

    def _sync_file(self) -> None:
        while not self._closed.is_set():
            self._written.wait()
            self._closed.wait(SYNCED)
            self._written.clear()
            with suppress(OSError, ValueError):  # a full disk is reported by the next write
                os.fsync(self._file.fileno())

    def _compact_file(self, *, load: bool = False) -> int:
        """Rewrite the file without the answers of tasks that are done; return how many answers remain."""
        left = dropped = 0

        def select_lines() -> Iterator[bytes]:
            nonlocal left, dropped
            for line, data in self._read_lines():
                if data is None or self._is_done(data["index"]):
                    dropped += 1
                    continue
                left += 1
                if load:
                    answers = self._waiting.setdefault(data["index"], {}).setdefault(data["question"], deque())
                    answers.append(_read_answer(data))
                yield line

        kept = [*select_lines()] if load else None  # nothing is touched before all lines are known to be a journal's
        if kept is None or dropped:
            lines = select_lines() if kept is None else kept
            self._file = replace_exclusively(self._file, self.path, lines, busy=_BUSY)
        return left

    def _read_lines(self) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
        """Yield the lines with their data; None for the last one if it was only half written."""
        self._file.seek(0)
        reader = BufferedReader(self._file)
        try:
            for number, line in enumerate(reader, 1):
                if not line.endswith(b"\n"):
                    yield line, None
                    return
                data = _parse_line(line)
                if data is None:
                    raise ResultsError(f"{self.path}:{number}: this is not a line of a journal; mend or remove it")
                if data["run"] != self._run:
                    raise ResultsError(
                        f"{self.path}:{number}: the journal belongs to another run; remove it, or give another file "
                        "of results"
                    )
                yield line, data
        finally:
            reader.detach()


def _parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        data: Any = parse_json(line)
        if data["format"] != _FORMAT or type(data["index"]) is not int or type(data["question"]) is not str:
            return None
        _read_answer(data)
        return {**data, "run": data["run"]}
    except (ValueError, KeyError, TypeError):
        return None


def _read_answer(data: Mapping[str, Any]) -> Answer | InvalidAnswer:
    """Read the answer of a line; raise ``ValueError`` or similar if the data is not valid."""
    if "answer" in data:
        return answer_from_data(data["answer"])
    transcript = [(str(asked), str(answered)) for asked, answered in data["transcript"]]
    return InvalidAnswer(str(data["problem"]), transcript, usage_from_data(data["usage"]))


def _hash_question(question: Question) -> str:
    """Identify what the answerer sees."""
    text = json.dumps(question.content, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
