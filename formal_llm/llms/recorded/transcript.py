"""Transcripts: questions and their answers, one JSON line each; and the LLM that replays them.

With its transcript anyone can reproduce a result exactly, offline. A line is ::

    {"format": "formal_llm.transcript/1", "time": "2025-01-31T12:00:00.000+00:00", "llm": "openai:MODEL", "walk": "",
     "messages": [["user", "..."]], "options": [[1, "..."], [2, "..."]], "several": false,
     "answer": {"numbers": [2], "probabilities": {"1": 0.2, "2": 0.8}, "text": "2", "usage": {"requests": 1, ...}}}

A request for text has no options, an answer without numbers, and an additional field ``"writes": {"max_tokens": ...,
"stop": ..., "temperature": ...}`` (with ``"continues": true`` if a text was continued instead of a chat). An answer
that could not be used has ``"invalid": {"problem": "...", "texts": ["..."], "usage": {...}}`` in place of ``answer``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from formal_llm.authored.files import check_plain, open_file, parse_json
from formal_llm.errors import AnswerFileError, InvalidAnswer, LLMError, NotRecorded
from formal_llm.llms.llm import LLMLike, WrapperLLM, aanswered, all_answered, answered, checked
from formal_llm.llms.objects import recorded_object
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded import answer_data
from formal_llm.llms.texts import Texts
from formal_llm.llms.usage import TokenUsage

_FORMAT = "formal_llm.transcript/1"
#: The beginning of every line, which distinguishes an incomplete line from other text.
_BEGINNING = b'{"format": "formal_llm.transcript/1", '


class RecordingLLM(WrapperLLM):
    """An LLM whose answers are written to a transcript.

    Threads and coroutines may share it, but only one process at a time may write to a file. Each line is written to the
    operating system immediately and completely, so a killed process loses no answer. An existing transcript is
    continued; an incomplete last line is removed. Failures of a provider are no answers and are not recorded.

    Args:
        llm: the LLM that answers: a provider string, a function or an object.

    Raises:
        AnswerFileError: the file is no transcript, or is not writable; also while answering.
    """

    def __init__(self, llm: LLMLike, path: str | os.PathLike[str]) -> None:
        super().__init__(llm)
        self.path = Path(path)
        self._writing = threading.Lock()
        with self._convert_errors():
            self._file = _open_to_append(self.path)
        # Also closed when the object is garbage-collected, and at the end of the program.
        self._closing = weakref.finalize(self, self._file.close)

    def choose(self, question: Question) -> Answer:
        """Return the answer of the LLM, which is recorded.

        Raises:
            InvalidAnswer: the answer is not legal, which is recorded too.
            AnswerFileError: the answer cannot be written.
        """
        with self._bad_recorded(question):
            answer = question.check(answered(self.llm, question))
        self._record_outcomes([(question, answer)])
        return answer

    async def _achoose(self, question: Question) -> Answer:
        with self._bad_recorded(question):
            answer = question.check(await aanswered(self._awaited, question))
        self._record_outcomes([(question, answer)])
        return answer

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        answers = all_answered(self._batched, questions)
        outcomes = [checked(question, outcome) for question, outcome in zip(questions, answers, strict=True)]
        pairs = zip(questions, outcomes, strict=True)
        self._record_outcomes([(q, outcome) for q, outcome in pairs if isinstance(outcome, (Answer, InvalidAnswer))])
        return outcomes

    def close(self) -> None:
        """Close the transcript; the wrapped LLM stays as it is."""
        with self._writing:
            self._closing()

    @contextmanager
    def _bad_recorded(self, question: Question) -> Iterator[None]:
        try:
            yield
        except InvalidAnswer as error:
            self._record_outcomes([(question, error)])
            raise

    def _record_outcomes(self, outcomes: Sequence[tuple[Question, Answer | InvalidAnswer]]) -> None:
        lines = [_write_line(self.name, question, outcome) for question, outcome in outcomes]
        with self._writing, self._convert_errors():
            if self._file.closed:
                raise AnswerFileError(str(self.path), "the transcript is closed")
            for line in lines:
                written = self._file.write(line)
                if written != len(line):
                    # The disk is full: an incomplete line must not stay, or the next one would be appended to it.
                    self._file.truncate(os.fstat(self._file.fileno()).st_size - (written or 0))
                    raise AnswerFileError(str(self.path), "the disk is full; the last answer is not in the transcript")

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AnswerFileError(str(self.path), f"it cannot be written to: {error.strerror or error}") from error


class ReplayLLM:
    """Answers from a transcript, as recorded, including bad answers and usage.

    A question is looked up by its walk and content (chat, options), then by its content alone. If it was recorded
    several times, its answers are given in the order in which they were recorded, each one once. An incomplete last
    line is ignored. Threads may share the object.

    Raises:
        AnswerFileError: the file does not exist, or a line of it, named in the message, cannot be read.
    """

    #: Its ``choose`` accepts a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = f"replay:{path}"
        self._by_walk: dict[tuple[str, bytes], deque[_Recording]] = {}
        self._by_content: dict[bytes, deque[_Recording]] = {}
        self._counts: dict[bytes, int] = {}
        self._taking = threading.Lock()
        self._digest = hashlib.sha256()
        self._left = 0
        # A recorded text is found like an answer; NotRecorded is raised if there is none, or none left.
        texts = Texts(self.choose)
        self.generate, self.continue_text = texts.generate, texts.continue_text
        self.generate_object = partial(recorded_object, texts)
        try:
            with open_file(self.path) as file:
                for number, line in enumerate(file, 1):
                    self._digest.update(line)
                    self._read_line(line, number)
        except OSError as error:
            raise AnswerFileError(
                str(path), f"it cannot be read: {error.strerror or error}; --record FILE writes one"
            ) from error

    def __repr__(self) -> str:
        return f"<ReplayLLM {self.name}>"

    reads = frozenset({"chat"})

    @property
    def identity(self) -> dict[str, object]:
        """The contents of the transcript, which determine the answers, whatever its name is."""
        return {"llm": "replay", "sha256": self._digest.hexdigest()}

    @property
    def left(self) -> int:
        """The number of recordings that have not been used yet."""
        return self._left

    def choose(self, question: Question) -> Answer:
        """Return the next answer that was recorded for ``question``.

        Raises:
            InvalidAnswer: the recorded answer was not legal.
            NotRecorded: the question is not in the transcript, or has no answer left.
        """
        content = _digest(question.content)
        with self._taking:
            recording = _find_unused(self._by_walk.get((question.walk, content))) or _find_unused(
                self._by_content.get(content)
            )
            if recording is None:
                raise NotRecorded(str(self.path), question, self._counts.get(content, 0))
            recording.used = True
            self._left -= 1
        outcome = recording.outcome
        if isinstance(outcome, Answer):
            return question.check(outcome)
        raise InvalidAnswer(outcome.problem, [(question.prompt, text) for text in outcome.texts], outcome.usage)

    def _read_line(self, line: bytes, number: int) -> None:
        try:
            walk, content, outcome = _parse_line(line)
        except ValueError as error:
            if not line.endswith(b"\n") and (number > 1 or _is_beginning(line)):
                return  # the recording was interrupted while it was written
            raise AnswerFileError(
                str(self.path), f"this line is no record of a transcript: {error}; --record FILE writes one", number
            ) from None
        recording = _Recording(outcome)
        self._by_walk.setdefault((walk, content), deque()).append(recording)
        self._by_content.setdefault(content, deque()).append(recording)
        self._counts[content] = self._counts.get(content, 0) + 1
        self._left += 1


@dataclass(frozen=True, slots=True)
class _Invalid:
    """An answer that could not be used: the problem, the texts, and the usage."""

    problem: str
    texts: tuple[str, ...]
    usage: TokenUsage | None


@dataclass(slots=True)
class _Recording:
    """The recorded outcome of a question, which is in two queues and is used once."""

    outcome: Answer | _Invalid
    used: bool = False


def _find_unused(queue: deque[_Recording] | None) -> _Recording | None:
    """Remove the used recordings from the front and return the first unused one."""
    while queue and queue[0].used:
        queue.popleft()
    return queue[0] if queue else None


# -- lines -------------------------------------------------------------------------------------------------------------


def _write_line(llm: str, question: Question, outcome: Answer | InvalidAnswer) -> bytes:
    record: dict[str, Any] = {
        "format": _FORMAT,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "llm": llm,
        "walk": question.walk,
        **question.content,
    }
    if isinstance(outcome, Answer):
        record["answer"] = answer_data.answer_to_data(outcome)
    else:
        texts = [text for _, text in outcome.transcript]
        record["invalid"] = {"problem": outcome.problem, "texts": texts}
        if outcome.usage is not None:
            record["invalid"]["usage"] = answer_data.usage_to_data(outcome.usage)
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which a cut-off answer may contain
        return json.dumps(record).encode() + b"\n"


def _parse_line(line: bytes) -> tuple[str, bytes, Answer | _Invalid]:
    """Read the walk, the digest of the content and the outcome from a line; raise ``ValueError`` if it is invalid."""
    record = parse_json(line)
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    if missing := [key for key in ("messages", "options", "several") if key not in record]:
        raise ValueError(f"it has no {missing[0]!r}")
    walk = record.get("walk", "")
    if not isinstance(walk, str):
        raise ValueError("its walk is no text")
    fields = ("messages", "options", "several", *(("writes",) if "writes" in record else ()))
    content = _digest({key: record[key] for key in fields})
    if "answer" in record:
        return walk, content, answer_data.answer_from_data(record["answer"])
    invalid = record.get("invalid")
    if not isinstance(invalid, dict) or not isinstance(invalid.get("problem"), str):
        raise ValueError("it has neither an answer nor what was wrong with it")
    texts = invalid.get("texts", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("the texts of the bad answer are none")
    usage = answer_data.usage_from_data(invalid["usage"]) if "usage" in invalid else None
    return walk, content, _Invalid(invalid["problem"], tuple(texts), usage)


def _digest(content: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()


# -- files -------------------------------------------------------------------------------------------------------------


def _open_to_append(path: Path) -> Any:
    """Open the file unbuffered and ensure that it has whole lines; raise ``AnswerFileError`` if it is no transcript."""
    check_plain(path)
    file = path.open("a+b", buffering=0)
    try:
        file.seek(0)
        if not _is_beginning(file.read(len(_BEGINNING))):
            raise AnswerFileError(str(path), "this file is no transcript; give the recording another file")
        end, tail = _last_line(file)
        if tail:
            try:
                _parse_line(tail)
            except ValueError:
                if not _is_beginning(tail):
                    number = _count_lines(file) + 1
                    raise AnswerFileError(str(path), "this line is no record of a transcript", number) from None
                file.truncate(end)
            else:
                file.write(b"\n")  # complete except for its line feed, which an editor may have removed
    except BaseException:
        file.close()
        raise
    return file


def _last_line(file: Any) -> tuple[int, bytes]:
    """Return the position after the last line feed, and the text after it."""
    place = file.seek(0, os.SEEK_END)
    tail = b""
    while place:
        size = min(place, 1 << 16)
        place -= size
        file.seek(place)
        part = file.read(size)
        cut = part.rfind(b"\n")
        tail = part[cut + 1 :] + tail
        if cut >= 0:
            return place + cut + 1, tail
    return 0, tail


def _count_lines(file: Any) -> int:
    file.seek(0)
    return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 16), b""))


def _is_beginning(text: bytes) -> bool:
    """Return whether a text, as far as it goes, begins like a line of a transcript."""
    return text.startswith(_BEGINNING) or _BEGINNING.startswith(text)
