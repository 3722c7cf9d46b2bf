"""Many questions in one request, answered within a day at half the price: the batch interfaces of OpenAI and Anthropic.

A *round* is a list of questions, in planning those that all walks ask at a time. It becomes one batch, or several where
a provider's limits demand it. Each request is built, and each response is read, by the adapter itself: a transport that
takes the provider's place keeps the request that the adapter sends, and hands it the response when the batch has one.

The id of a batch is written to a file before anything is waited for. A run that was stopped or killed finds its answers
there: a request is named by what it asks and by the walk that asks, so the same question gets the answer that was
paid.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import httpx2

from formal_llm.errors import AnswerFileError, LLMError, ProviderError, RunStopped
from formal_llm.llms.hosted.adapter import HostedLLM
from formal_llm.llms.hosted.bounds import RequestBounds
from formal_llm.llms.hosted.pace import limit_pace
from formal_llm.llms.hosted.transport import sync_client
from formal_llm.llms.llm import LLMLike, answered, resolve
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.texts import Texts

if TYPE_CHECKING:
    import anthropic
    import openai

A = TypeVar("A")
T = TypeVar("T")

#: The batches in which a question is sent before it fails: failures that may pass, settings that a model refuses.
TRIES = 3
#: The failed requests for the state of a batch, in a row, after which a run ends.
_FAILED_LOOKS = 10
#: The bounds of a request that sends a batch or fetches its answers.
_BOUNDS = RequestBounds(deadline=3_600, max_bytes=1_000_000_000)
#: Statuses of failures that may pass, besides those from 500.
_PASSING = frozenset({408, 409, 429})
_FORMAT = "formal_llm.batches/1"
_ERROR_STATUS = {
    "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip


class BatchReply(NamedTuple):
    """What a batch has for one request.

    Attributes:
        status: the HTTP status of the response; 0 if there is none.
        body: the body of the response, as JSON data; without a response the reason.
        may_pass: whether the request is sent again.
    """

    status: int
    body: Any
    may_pass: bool

    @classmethod
    def of(cls, status: int, body: object) -> BatchReply:
        """Create the reply of a response; raise ``TypeError`` if it is none."""
        if not isinstance(body, dict) or not isinstance(status, int) or not 200 <= status < 600:
            raise TypeError("a response has a status and a body")
        return cls(status, body, _may_pass(status))


def _may_pass(status: int) -> bool:
    return status in _PASSING or status >= 500


class BatchState(NamedTuple):
    """How far a batch is.

    Attributes:
        status: the provider's word for it.
        ended: whether nothing more will be answered.
        answered, total: the number of requests.
        problem: why the requests without a reply have none and are not sent again; empty if they are.
    """

    status: str
    ended: bool
    answered: int
    total: int
    problem: str = ""


class BatchService(ABC):
    """A provider's batch interface.

    Args:
        llm: the adapter of the model.
    """

    #: The limits of a batch.
    most_requests: int
    most_bytes: int

    def __init__(self, llm: HostedLLM) -> None:
        self._llm = llm
        self._made: Any = None

    @property
    def _client(self) -> Any:
        """The SDK's client for batches: that of the user, or one like the adapter's with bounds for large files."""
        if self._llm.bounds is None:
            return self._llm.client
        if self._made is None:
            self._made = self._llm.client.with_options(http_client=sync_client(self._get_sdk(), _BOUNDS))
        return self._made

    def call(self, method: Callable[[A], T], argument: A) -> T:
        """Call one of the methods below, with errors of this library and without the pace of single questions.

        Raises:
            ProviderError: it failed.
        """
        with self._llm._scrub_errors(), limit_pace(), _BOUNDS.running():
            try:
                return method(argument)
            except (AttributeError, IndexError, KeyError, TypeError) as error:
                raise self._llm._make_unreadable_error(error, None) from error  # the SDKs do not check what comes back
            except Exception as error:
                self._llm._raise_failure(error, False)
                raise

    def close(self) -> None:
        """Close the connections of the client that was made here."""
        if self._made is not None:
            self._made.close()
            self._made = None

    @abstractmethod
    def _get_sdk(self) -> Any:
        """Return the module of the SDK."""

    @abstractmethod
    def make_line(self, key: str, body: bytes) -> bytes:
        """Return a request of a batch as JSON: its name, and the body that the adapter sent."""

    @abstractmethod
    def create(self, lines: Sequence[bytes]) -> str:
        """Create a batch and return its id. It is not tried twice, since there might be two batches then."""

    @abstractmethod
    def read_state(self, batch: str) -> BatchState:
        """Ask how far a batch is."""

    @abstractmethod
    def fetch_replies(self, batch: str) -> dict[str, BatchReply]:
        """Fetch the replies of a batch that has ended, by the names of their requests."""

    @abstractmethod
    def cancel(self, batch: str) -> None:
        """Have a batch end early; what was answered by then can be fetched."""


class OpenAIBatches(BatchService):
    """OpenAI's batches: a file of requests, a file of responses, a file of errors."""

    most_requests, most_bytes = 50_000, 200_000_000
    _ENDPOINT = "/v1/chat/completions"
    _ENDED = ("completed", "failed", "expired", "cancelled")

    def _get_sdk(self) -> Any:
        import openai

        return openai

    def make_line(self, key: str, body: bytes) -> bytes:
        """Return a line of the file of requests."""
        return b'{"custom_id":"%s","method":"POST","url":"%s","body":%s}\n' % (
            key.encode(), self._ENDPOINT.encode(), body,
        )  # fmt: skip

    def create(self, lines: Sequence[bytes]) -> str:
        """Send the file and create the batch."""
        client: openai.OpenAI = self._client
        file = client.files.create(file=("questions.jsonl", b"".join(lines)), purpose="batch")
        once = client.with_options(max_retries=0)
        made = once.batches.create(input_file_id=file.id, endpoint=self._ENDPOINT, completion_window="24h")  # type: ignore[arg-type]
        return _check_id(made.id)

    def read_state(self, batch: str) -> BatchState:
        """Ask how far a batch is."""
        found = self._client.batches.retrieve(batch)
        counts = found.request_counts
        problem = ""
        if found.status == "failed":
            reasons = "; ".join(str(error.message) for error in (found.errors and found.errors.data) or ())[:500]
            problem = f"the batch {batch} was refused ({reasons}); a smaller one may be accepted: give a concurrency"
        elif found.status == "cancelled":
            problem = f"the batch {batch} was cancelled"
        return BatchState(
            str(found.status), found.status in self._ENDED, counts.completed + counts.failed if counts else 0,
            counts.total if counts else 0, problem,
        )  # fmt: skip

    def fetch_replies(self, batch: str) -> dict[str, BatchReply]:
        """Read the file of responses and the file of errors."""
        found = self._client.batches.retrieve(batch)
        files = filter(None, (found.output_file_id, found.error_file_id))
        return _read_replies(b"\n".join(self._client.files.content(file).content for file in files), self._read_reply)

    @staticmethod
    def _read_reply(line: dict[str, Any]) -> BatchReply:
        if line["response"] is not None:
            return BatchReply.of(line["response"]["status_code"], line["response"]["body"])
        error = line["error"]
        return BatchReply(0, str(error.get("message") or error["code"]), error["code"] != "batch_cancelled")

    def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        self._client.batches.cancel(batch)


class AnthropicBatches(BatchService):
    """Anthropic's message batches."""

    most_requests, most_bytes = 100_000, 256_000_000

    def _get_sdk(self) -> Any:
        import anthropic

        return anthropic

    def make_line(self, key: str, body: bytes) -> bytes:
        """Return one of the requests."""
        return b'{"custom_id":"%s","params":%s}' % (key.encode(), body)

    def create(self, lines: Sequence[bytes]) -> str:
        """Create the batch."""
        once: anthropic.Anthropic = self._client.with_options(max_retries=0)
        return _check_id(once.messages.batches.create(requests=map(json.loads, lines)).id)

    def read_state(self, batch: str) -> BatchState:
        """Ask how far a batch is."""
        found = self._client.messages.batches.retrieve(batch)
        counts = found.request_counts
        done = counts.succeeded + counts.errored + counts.canceled + counts.expired
        return BatchState(found.processing_status, found.processing_status == "ended", done, done + counts.processing)

    def fetch_replies(self, batch: str) -> dict[str, BatchReply]:
        """Read the results; from the address in the documents, not from one that a server names."""
        path = f"/v1/messages/batches/{quote(batch, safe='')}/results"
        return _read_replies(self._client.get(path, cast_to=httpx2.Response).content, self._read_reply)

    @staticmethod
    def _read_reply(line: dict[str, Any]) -> BatchReply:
        result = line["result"]
        match result["type"]:
            case "succeeded":
                return BatchReply.of(200, result["message"])
            case "errored":
                return BatchReply.of(_ERROR_STATUS.get(result["error"]["error"]["type"], 400), result["error"])
            case "canceled":
                return BatchReply(0, "the batch was cancelled", False)
            case kind:
                return BatchReply(0, f"the request is {kind}: the batch ended before it was answered", True)

    def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        self._client.messages.batches.cancel(batch)


_SERVICES: dict[str, type[BatchService]] = {"openai": OpenAIBatches, "anthropic": AnthropicBatches}


def _check_id(batch: object) -> str:
    if not isinstance(batch, str) or not batch:
        raise TypeError("a batch has an id")
    return batch


def _read_replies(content: bytes, read: Callable[[dict[str, Any]], BatchReply]) -> dict[str, BatchReply]:
    """Read the lines of a file; a request whose line is cut off or of another form has no reply."""
    replies = {}
    for text in content.splitlines():
        with suppress(ValueError, RecursionError, AttributeError, KeyError, TypeError):
            line = json.loads(text)
            replies[str(line["custom_id"])] = read(line)
    return replies


class _Request(NamedTuple):
    """A request to send: its name in a batch, and its body."""

    name: str
    body: bytes


class _Exchange(httpx2.BaseTransport):
    """Takes the place of a provider: keeps the request that is sent; hands out the response, if there is one for it."""

    def __init__(self) -> None:
        self._known: tuple[bytes, BatchReply] | None = None
        #: The body of the request for which there was no response.
        self.asked: bytes | None = None

    def expect(self, known: tuple[bytes, BatchReply] | None) -> None:
        """Prepare for a question, with the body of a request and its reply."""
        self._known, self.asked = known, None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Respond with what is known, or with a failure that nobody reads."""
        body = request.read()
        if self._known is not None and self._known[0] == body:
            return httpx2.Response(self._known[1].status, json=self._known[1].body)
        self.asked = body
        return httpx2.Response(503)


@dataclass(eq=False)
class BatchWatch:
    """How a run with batches is watched and stopped.

    Attributes:
        file: where the ids of batches are written whose answers are not used yet; None writes none.
        stop: once it is set, nothing is waited for any more. The batch goes on at the provider.
        report: called with a line about how far a batch is, whenever that has changed.
        interval: the seconds between the first two looks at a batch, and between the last ones.
    """

    file: Path | None = None
    stop: Event = field(default_factory=Event)
    report: Callable[[str], object] = lambda _: None
    interval: tuple[float, float] = (5.0, 60.0)


class BatchedLLM:
    """A hosted model that is asked in batches: slow, for half the price.

    Planners ask the questions of all plans together, round after round. Questions that fail for a passing reason, or
    that expire, are sent again, each in :data:`TRIES` batches at most. OpenAI's batches have no decisions endpoint, so
    choices are made there by chat completions. It is used from one thread at a time.

    Args:
        llm: ``openai:MODEL``, ``anthropic:MODEL``, or such an adapter.
        watch: where ids are kept, what stops the run, and to whom its progress is reported.

    Attributes:
        together: the number of questions that it is asked together at most.

    Raises:
        LLMError: the provider has no batches.
        AnswerFileError: the file of ids cannot be read.
    """

    #: Its ``choose`` accepts a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True
    reads = HostedLLM.reads

    def __init__(self, llm: LLMLike, watch: BatchWatch | None = None) -> None:
        adapter = resolve(llm)
        service = _SERVICES.get(adapter.batches) if isinstance(adapter, HostedLLM) else None
        if service is None or not isinstance(adapter, HostedLLM):
            raise LLMError(
                f"{getattr(adapter, 'name', llm)} is not asked in batches: openai:MODEL and anthropic:MODEL are"
            )
        self.watch = watch or BatchWatch()
        self.name = adapter.name
        self._exchange = _Exchange()
        self._twin = adapter.for_batches(self._exchange)
        self._service = service(adapter)
        self.together = self._service.most_requests
        #: The batches of which some answers may not be used yet, and the replies of earlier runs, by their names.
        self._pending = self._earlier = _read_ids(self.watch.file)
        self._replies: dict[str, BatchReply] = {}
        self._counts = Counter[str]()
        self._failed_looks = 0
        texts = Texts(self.choose)
        self.generate, self.generate_object = texts.generate, texts.generate_object

    def __repr__(self) -> str:
        return f"<BatchedLLM {self.name}>"

    @property
    def identity(self) -> dict[str, object]:
        """That of the model: answers are the same as without batches."""
        return self._twin.identity

    def choose(self, question: Question) -> Answer:
        """Answer a question by a batch of its own; see :meth:`choose_many`."""
        outcome = self.choose_many([question])[0]
        if isinstance(outcome, LLMError):
            raise outcome
        return outcome

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """Answer the questions by a batch; those that fail for a passing reason by further ones.

        Raises:
            ProviderError: no batch could be created, or its state is not to be had.
            RunStopped: it was stopped; what was sent is answered nevertheless, and can be fetched later.
        """
        if not self._replies and not self._earlier:
            self._write_ids([])  # the answers to earlier questions are used: this is a new round
        self._counts.clear()
        results = [self._ask_adapter(question) for question in questions]
        failures: dict[int, LLMError] = {}
        for _ in range(TRIES):
            requests = {place: one for place, one in enumerate(results) if isinstance(one, _Request)}
            if not requests:
                break
            try:
                replies = self._fetch_replies(requests.values())
            except BaseException:
                self._earlier = self._pending
                raise
            for place, request in requests.items():
                results[place], failures[place] = self._read_reply(questions[place], request, replies[request.name])
        return [failures[place] if isinstance(one, _Request) else one for place, one in enumerate(results)]

    def cancel(self) -> None:
        """Have the batches that are not used yet end early; what they answered by then can still be fetched."""
        for batch in self._pending:
            self._service.call(self._service.cancel, batch)

    def close(self) -> None:
        """Close the connections, and forget the batches, unless the last round was broken off."""
        if not self._earlier:
            self._write_ids([])
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # the answers of the last round may not be kept
            self._service.close()

    def _ask_adapter(
        self, question: Question, known: tuple[bytes, BatchReply] | None = None
    ) -> Answer | LLMError | _Request:
        """Have the adapter ask a question; return its request if there is no response for it.

        The name of a request is a hash of its walk and its body, and the number of its equals before it.
        """
        self._exchange.expect(known)
        outcome: Answer | LLMError
        try:
            outcome = answered(self._twin, question)
        except LLMError as error:
            outcome = error
        if (body := self._exchange.asked) is None:
            return outcome
        name = hashlib.sha256(f"{question.walk}\0".encode() + body).hexdigest()[:40]
        self._counts[name] += 1
        return _Request(f"{name}-{self._counts[name]}", body)

    def _read_reply(
        self, question: Question, request: _Request, reply: BatchReply
    ) -> tuple[Answer | LLMError | _Request, LLMError]:
        """Return what a reply comes to, which may be a request to send, and the error if that is not sent."""
        outcome: Answer | LLMError | _Request = ProviderError(f"{self.name}: {reply.body}")
        if reply.status:
            outcome = self._ask_adapter(question, (request.body, reply))
        if reply.may_pass and isinstance(outcome, LLMError):
            return request, outcome
        return outcome, ProviderError(f"{self.name}: the request was refused in each of its forms")

    # -- batches --------------------------------------------------------------------------------------------------

    def _fetch_replies(self, requests: Collection[_Request]) -> dict[str, BatchReply]:
        """Return the reply to each request by its name; what an earlier run has sent is not sent again."""
        if self._earlier:
            self._replies |= self._await_batches(self._earlier)[0]
            self._earlier = []
        found = {name: self._replies.pop(name) for name, _ in requests if name in self._replies}
        wanted = [one for one in requests if one.name not in found or found[one.name].may_pass]
        created: list[str] = []
        for part in self._split_batches(self._service.make_line(*one) for one in wanted):
            created.append(self._service.call(self._service.create, part))
            self._write_ids([*self._pending, created[-1]])
        replies, problem = self._await_batches(created)
        found |= replies
        missing = BatchReply(0, problem or "the batch has no answer to this request", not problem)
        return {name: found.get(name, missing) for name, _ in requests}

    def _split_batches(self, lines: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Split requests into batches within the provider's limits."""
        part: list[bytes] = []
        size = 0
        for line in lines:
            if part and (len(part) == self._service.most_requests or size + len(line) > self._service.most_bytes):
                yield part
                part, size = [], 0
            part.append(line)
            size += len(line) + 1
        if part:
            yield part

    def _await_batches(self, batches: Sequence[str]) -> tuple[dict[str, BatchReply], str]:
        """Wait until batches have ended; the pauses between looks at them grow.

        Returns:
            Their replies, and why requests without a reply are not sent again.
        """
        replies: dict[str, BatchReply] = {}
        problem, seen, since = "", dict[str, BatchState](), time.monotonic()
        waiting, (pause, longest) = list(batches), self.watch.interval
        while waiting:
            for batch in list(waiting):
                if self.watch.stop.is_set():
                    raise RunStopped
                state, got = self._look_at(batch)
                if seen.get(batch) != state:
                    seen[batch] = state
                    self.watch.report(
                        f"batch {batches.index(batch) + 1} of {len(batches)}: {state.status}, {state.answered} of "
                        f"{state.total} answered, {(time.monotonic() - since) / 60:.0f} min"
                    )
                if state.ended:
                    waiting.remove(batch)
                    # A request that was sent again has its answer in the later batch.
                    replies |= {name: reply for name, reply in got.items() if name not in replies or not reply.may_pass}
                    problem = problem or state.problem
            if waiting:
                self._sleep_between(pause)
                pause = min(pause * 1.5, longest)
        return replies, problem

    def _look_at(self, batch: str) -> tuple[BatchState, dict[str, BatchReply]]:
        """Return how far a batch is, and its replies if it has ended.

        Raises:
            ProviderError: that is not known, for a reason that does not pass, or many times in a row.
        """
        try:
            state = self._service.call(self._service.read_state, batch)
            got = self._service.call(self._service.fetch_replies, batch) if state.ended else {}
        except ProviderError as error:
            status = getattr(error.cause, "status_code", None)
            if status == 404 and batch in self._earlier:
                warnings.warn(f"{self.name}: the batch {batch} of an earlier run is gone", stacklevel=6)
                return BatchState("gone", True, 0, 0), {}
            self._failed_looks += 1
            if self._failed_looks >= _FAILED_LOOKS or (isinstance(status, int) and not _may_pass(status)):
                raise
            return BatchState("not known at the moment", False, 0, 0), {}
        self._failed_looks = 0
        return state, got

    def _sleep_between(self, seconds: float) -> None:
        """Sleep until the time is over or the run is stopped; a signal handler may stop it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.watch.stop.is_set():
            time.sleep(min(left, 0.2))

    def _write_ids(self, batches: list[str]) -> None:
        """Keep the ids of the batches in the file; without any it is removed."""
        self._pending, file = batches, self.watch.file
        if file is None:
            return
        if not batches:
            file.unlink(missing_ok=True)
            return
        beside = file.with_name(f"{file.name}.new")
        try:
            with beside.open("w", encoding="utf-8") as opened:
                json.dump({"format": _FORMAT, "batches": batches}, opened)
                opened.flush()
                os.fsync(opened.fileno())
            beside.replace(file)
        except OSError as error:
            ids = ", ".join(batches)
            raise AnswerFileError(str(file), f"the ids of batches cannot be kept ({error.strerror}): {ids}") from None


def _read_ids(file: Path | None) -> list[str]:
    """Read the ids of batches from a file; none where there is no file."""
    if file is None or not file.exists():
        return []
    try:
        data = json.loads(file.read_bytes())
        if data["format"] == _FORMAT and all(isinstance(one, str) and one for one in data["batches"]):
            return list(data["batches"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise AnswerFileError(str(file), "this is no file of batches; remove it to ask everything again")
