"""What a model answered in runs that are not finished: a run that was killed asks nothing twice.

Beside a results file stands one with these answers. A run that is begun again takes them from there, one after the
other, as long as it asks the same: a tool that gives something else now leads to other questions, and from there on the
model is asked. An answer is kept for its place in its run, so samples that are drawn for one question stay apart.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Container
from pathlib import Path
from typing import Any, Self

from formal_llm.authored.files import parse_json
from formal_llm.authored.tables import Keys, Named, OneOf, problems
from formal_llm.errors import ResultsError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data
from formal_llm.planning.drivers.json_lines import open_exclusively, write_line

_FORMAT = "formal_llm.calls/1"
_BUSY = "another run is writing to this file; wait for it, or name another results file"
_HEAD = Keys({"format": OneOf(texts=(_FORMAT,)), "run": str}, needed=("format", "run"))
_ROW = Keys({"index": int, "at": int, "asked": str, "answer": Named(object)}, needed=("index", "at", "asked", "answer"))


class AnswerJournal:
    """The answers for runs that are not finished.

    Args:
        path: the file; made where it is not there. That of another agent is begun anew: its answers are of no use.
        run: what tells the agent apart from others (:func:`~formal_llm.agents.many.identify_runs`).
        done: the runs that are finished: their answers are not needed any more.

    Raises:
        ResultsError: the file is damaged, cannot be written, or somebody is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str], run: str, done: Container[int] = ()) -> None:
        self.path = Path(path)
        #: By run, its answers, each with what was asked; and how many of them are taken.
        self._answers: dict[int, list[tuple[str, Answer]]] = {}
        self._taken: dict[int, int] = {}
        self._file = open_exclusively(self.path, what="file of answers", busy=_BUSY)
        try:
            self._read_file(run, done)
        except BaseException:
            self._file.close()
            raise

    def _read_file(self, run: str, done: Container[int]) -> None:
        self._file.seek(0)
        text = self._file.readall() or b""
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):  # the line that was being written when the program died
            self._file.truncate(len(whole))
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                row: Any = parse_json(line)
                problem = next((one.problem for one in problems(row, _HEAD if number == 1 else _ROW)), None)
                if problem is not None:
                    raise ValueError(problem)
                if number == 1:
                    if row["run"] != run:
                        break
                elif row["index"] not in done:
                    answers = self._answers.setdefault(row["index"], [])
                    # A run that asked something else from some place on has written other answers from there on.
                    answers[row["at"] :] = [(row["asked"], answer_from_data(row["answer"]))]
            except (ValueError, TypeError, KeyError) as error:
                raise ResultsError(f"{self.path}:{number}: this line is damaged: {error}; delete the file") from None
        else:
            if whole:
                return
        self._file.truncate(0)
        write_line(self._file, self.path, {"format": _FORMAT, "run": run}, "the answer")

    def replay_answer(self, index: int, question: Question) -> Answer | None:
        """The next answer of a run, where it asks what it asked then; else None, and those after it count no more."""
        answers, at = self._answers.get(index, []), self._taken.get(index, 0)
        if at < len(answers) and answers[at][0] == _hash_question(question):
            self._taken[index] = at + 1
            return answers[at][1]
        self._answers.pop(index, None)
        return None

    def record_answer(self, index: int, question: Question, answer: Answer) -> None:
        """Keep the answer that came for a run."""
        at = self._taken.get(index, 0)
        self._taken[index] = at + 1
        data = {"index": index, "at": at, "asked": _hash_question(question), "answer": answer_to_data(answer)}
        write_line(self._file, self.path, data, "the answer")

    def delete_file(self) -> None:
        """Delete the file: all runs are finished."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hash_question(question: Question) -> str:
    return hashlib.sha256(json.dumps(question.content, sort_keys=True, default=str).encode()).hexdigest()[:16]
