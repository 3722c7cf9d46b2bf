"""A journal of paid answers: an answer is in a file before the next question of its plan, or of its agent, is asked.

It is ``FILE.journal`` beside the results file of a run, a file of :mod:`formal_llm.llms.recorded` with a row for each
answer that took a request. A run that was killed asks only what was in flight again: the next one takes the answers of
unfinished tasks from the journal, each for the question that it was given to. When all tasks are done, the journal is
removed.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path

from formal_llm.authored.files import parse_json
from formal_llm.errors import InvalidAnswer, RecordError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded import AnswerTable, digest_data, outcome_from_data, outcome_to_data
from formal_llm.llms.usage import NO_TOKENS


class AnswerJournal:
    """The answers of a run, by task; one process writes it.

    Args:
        path: the file; created if it is missing.
        run: the identifier of the run (:func:`~formal_llm.planning.drivers.results.run_of`).
        is_done: whether a task is done; its answers are no longer needed.
        paid_only: whether answers that took no request are left out.

    Raises:
        RecordError: another run is writing the file, or it belongs to another run or to something else.
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
        self._run, self._is_done, self._paid_only = run, is_done, paid_only
        self._waiting: dict[tuple[int, str], deque[Answer | InvalidAnswer]] = {}
        self._table = AnswerTable(self.path, exclusive=True)
        try:
            self._load_answers()
            self._drop_done()
        except BaseException:
            self._table.close()
            raise

    def take(self, index: int, question: Question, *, legal: bool = False) -> Answer | InvalidAnswer | None:
        """Return the next answer that a question of a task got in an earlier run, once; None if there is none.

        With ``legal``, answers that were not legal are skipped, since their usage is on record elsewhere.
        """
        answers = self._waiting.get((index, digest_data(question.content))) if self._waiting else None
        while answers:
            answer = answers.popleft()
            if not legal or isinstance(answer, Answer):
                return answer
        return None

    def record(self, index: int, question: Question, given: Answer | Exception) -> None:
        """Write an answer, legal or not; anything else is ignored.

        Raises:
            RecordError: it could not be written; the file is as it was.
        """
        if not isinstance(given, (Answer, InvalidAnswer)):
            return
        if self._paid_only and not (given.usage or NO_TOKENS).requests:
            return
        data = json.dumps(outcome_to_data(given), ensure_ascii=False)
        self._table.add(digest_data(question.content), self._run, str(index), data)

    def close(self) -> None:
        """Drop the answers of tasks that are done; without others the file is removed."""
        if self._table.closed:
            return
        try:
            self._drop_done()
            empty = not len(self._table)
        finally:
            self._table.close()
        if empty:
            self.path.unlink()

    def _load_answers(self) -> None:
        for number, key, run, walk, outcome in self._table.find():
            if run != self._run.encode():
                raise RecordError(
                    f"row {number}: the journal belongs to another run; remove it, or give another file of results",
                    file=str(self.path),
                )
            try:
                slot = int(walk), key.decode()
                self._waiting.setdefault(slot, deque()).append(outcome_from_data(parse_json(outcome, once=True)))
            except (ValueError, TypeError, AttributeError):
                raise RecordError(
                    f"row {number}: this is not a row of a journal; remove the file", file=str(self.path)
                ) from None

    def _drop_done(self) -> None:
        known = {int(walk) for (walk,) in self._table.execute("SELECT DISTINCT walk FROM answers")}
        done = {*filter(self._is_done, known)}
        for index in done:
            self._table.execute("DELETE FROM answers WHERE walk = ?", str(index))
        self._waiting = {slot: answers for slot, answers in self._waiting.items() if slot[0] not in done}
