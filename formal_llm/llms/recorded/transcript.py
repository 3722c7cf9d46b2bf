"""Transcripts: what was asked and what was answered, one JSON line each; and the LLM that answers from them again.

With its transcript a result can be made again by anybody, offline, to the last figure. A line is ::

    {"format": "formal_llm.transcript/1", "time": "2025-01-31T12:00:00.000+00:00", "llm": "openai:MODEL", "walk": "",
     "messages": [["user", "..."]], "options": [[1, "..."], [2, "..."]], "several": false,
     "answer": {"numbers": [2], "probabilities": {"1": 0.2, "2": 0.8}, "text": "2", "usage": {"requests": 1, ...}}}

A text that was written has no options, an answer without numbers, and ``"writes": {"max_tokens": ..., "stop": ...,
"temperature": ...}`` besides (with ``"continues": true`` where a text was gone on with, and not a chat);
or, in place of ``answer``, ``"invalid": {"problem": "...", "texts": ["..."], "usage": {...}}`` for an answer that could
not be used.
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
#: How every line begins, so that what is left of a half-written one can be distinguished from other text.
_BEGINNING = b'{"format": "formal_llm.transcript/1", '


class RecordingLLM(WrapperLLM):
    """An LLM whose answers are written to a transcript.

    Threads and coroutines may share it; of processes, one at a time writes to a file. Each line is handed to the
    operating system at once and whole, so a killed process loses nothing that was answered. A transcript that is there
    already is continued; should its last line be half-written, that is taken off. Failures of a provider are no answers
    and are not recorded.

    Args:
        llm: who answers: a provider string, a function or an object.
        path: the transcript.

    Raises:
        AnswerFileError: the file is something else, or cannot be written to; also while answering.
    """

    def __init__(self, llm: LLMLike, path: str | os.PathLike[str]) -> None:
        super().__init__(llm)
        self.path = Path(path)
        self._writing = threading.Lock()
        with self._errors_told():
            self._file = _open_to_append(self.path)
        # Also when it is forgotten, and at the end of the program.
        self._closing = weakref.finalize(self, self._file.close)

    def choose(self, question: Question) -> Answer:
        """The answer of the LLM, as it is recorded.

        Raises:
            InvalidAnswer: it is not legal; that is recorded too.
            AnswerFileError: it cannot be written.
        """
        with self._bad_recorded(question):
            answer = question.check(answered(self.llm, question))
        self._record([(question, answer)])
        return answer

    async def _achoose(self, question: Question) -> Answer:
        with self._bad_recorded(question):
            answer = question.check(await aanswered(self._awaited, question))
        self._record([(question, answer)])
        return answer

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        said = all_answered(self._batched, questions)
        outcomes = [checked(question, outcome) for question, outcome in zip(questions, said, strict=True)]
        came = zip(questions, outcomes, strict=True)
        self._record([(q, outcome) for q, outcome in came if isinstance(outcome, (Answer, InvalidAnswer))])
        return outcomes

    def close(self) -> None:
        """Close the transcript. The LLM behind is left as it is."""
        with self._writing:
            self._closing()

    @contextmanager
    def _bad_recorded(self, question: Question) -> Iterator[None]:
        try:
            yield
        except InvalidAnswer as error:
            self._record([(question, error)])
            raise

    def _record(self, outcomes: Sequence[tuple[Question, Answer | InvalidAnswer]]) -> None:
        lines = [_line(self.name, question, outcome) for question, outcome in outcomes]
        with self._writing, self._errors_told():
            if self._file.closed:
                raise AnswerFileError(str(self.path), "the transcript is closed")
            for line in lines:
                written = self._file.write(line)
                if written != len(line):
                    # The disk is full: no half line must stay, or the next one would be written behind it.
                    self._file.truncate(os.fstat(self._file.fileno()).st_size - (written or 0))
                    raise AnswerFileError(str(self.path), "the disk is full; the last answer is not in the transcript")

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AnswerFileError(str(self.path), f"it cannot be written to: {error.strerror or error}") from error


class ReplayLLM:
    """Answers from a transcript, as they were recorded: bad answers and costs included.

    A question is looked up by its walk and what it shows (chat, options), then by what it shows alone. If it was
    recorded several times, its answers come in the order in which they were recorded, each one once. A half-written
    last line is passed over. Threads may share it.

    Args:
        path: the transcript.

    Raises:
        AnswerFileError: there is no such file, or a line of it cannot be read; the message names it.
    """

    #: Its ``choose`` takes a :class:`~formal_llm.llms.generation.Writing`, too.
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
        # A text that was recorded is found as an answer is; NotRecorded where it is not there, or not that often.
        texts = Texts(self.choose)
        self.generate, self.continue_text = texts.generate, texts.continue_text
        self.generate_object = partial(recorded_object, texts)
        try:
            with open_file(self.path) as file:
                for number, line in enumerate(file, 1):
                    self._digest.update(line)
                    self._read(line, number)
        except OSError as error:
            raise AnswerFileError(str(path), f"it cannot be read: {error.strerror or error}") from error

    def __repr__(self) -> str:
        return f"<ReplayLLM {self.name}>"

    @property
    def identity(self) -> dict[str, object]:
        """What decides about the answers: the contents of the transcript, under whatever name."""
        return {"llm": "replay", "sha256": self._digest.hexdigest()}

    @property
    def left(self) -> int:
        """How many recordings have not been asked for yet."""
        return self._left

    def choose(self, question: Question) -> Answer:
        """The next answer that was recorded for ``question``.

        Raises:
            InvalidAnswer: that answer was not legal.
            NotRecorded: the question is not in the transcript, or not that often.
        """
        content = _digest(question.content)
        with self._taking:
            recording = _next(self._by_walk.get((question.walk, content))) or _next(self._by_content.get(content))
            if recording is None:
                raise NotRecorded(str(self.path), question, self._counts.get(content, 0))
            recording.used = True
            self._left -= 1
        outcome = recording.outcome
        if isinstance(outcome, Answer):
            return question.check(outcome)
        raise InvalidAnswer(outcome.problem, [(question.prompt, text) for text in outcome.texts], outcome.usage)

    def _read(self, line: bytes, number: int) -> None:
        try:
            walk, content, outcome = _recorded(line)
        except ValueError as error:
            if not line.endswith(b"\n") and (number > 1 or _is_beginning(line)):
                return  # the recording was broken off while it was written
            raise AnswerFileError(str(self.path), f"this line is no record of a transcript: {error}", number) from None
        recording = _Recording(outcome)
        self._by_walk.setdefault((walk, content), deque()).append(recording)
        self._by_content.setdefault(content, deque()).append(recording)
        self._counts[content] = self._counts.get(content, 0) + 1
        self._left += 1


@dataclass(frozen=True, slots=True)
class _Invalid:
    """An answer that could not be used: what was wrong, its text, what it cost."""

    problem: str
    texts: tuple[str, ...]
    usage: TokenUsage | None


@dataclass(slots=True)
class _Recording:
    """What came back for a question; it stands in two queues, and is used once."""

    outcome: Answer | _Invalid
    used: bool = False


def _next(queue: deque[_Recording] | None) -> _Recording | None:
    """The first recording that is not used; those that are, are taken off."""
    while queue and queue[0].used:
        queue.popleft()
    return queue[0] if queue else None


# -- lines -------------------------------------------------------------------------------------------------------------


def _line(llm: str, question: Question, outcome: Answer | InvalidAnswer) -> bytes:
    """The line of a question and what came back for it."""
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
    except UnicodeEncodeError:  # half of a surrogate pair, as a cut-off answer may have it
        return json.dumps(record).encode() + b"\n"


def _recorded(line: bytes) -> tuple[str, bytes, Answer | _Invalid]:
    """The walk, the digest of the content and what came back, from a line; ``ValueError`` where it is no record."""
    record = parse_json(line)
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    if missing := [key for key in ("messages", "options", "several") if key not in record]:
        raise ValueError(f"it has no {missing[0]!r}")
    walk = record.get("walk", "")
    if not isinstance(walk, str):
        raise ValueError("its walk is no text")
    told = ("messages", "options", "several", *(("writes",) if "writes" in record else ()))
    content = _digest({key: record[key] for key in told})
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
    """The file, unbuffered, with whole lines in it; ``AnswerFileError`` where it is no transcript."""
    check_plain(path)
    file = path.open("a+b", buffering=0)
    try:
        file.seek(0)
        if not _is_beginning(file.read(len(_BEGINNING))):
            raise AnswerFileError(str(path), "this file is no transcript; give the recording another file")
        end, tail = _last_line(file)
        if tail:
            try:
                _recorded(tail)
            except ValueError:
                if not _is_beginning(tail):
                    number = _count_lines(file) + 1
                    raise AnswerFileError(str(path), "this line is no record of a transcript", number) from None
                file.truncate(end)
            else:
                file.write(b"\n")  # whole, but for its end: an editor may have taken it off
    except BaseException:
        file.close()
        raise
    return file


def _last_line(file: Any) -> tuple[int, bytes]:
    """What stands behind the last end of a line, and where it begins."""
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
    """Whether a text begins as a line of a transcript does, as far as it goes."""
    return text.startswith(_BEGINNING) or _BEGINNING.startswith(text)
