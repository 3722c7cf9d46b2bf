"""A local server that speaks the batch protocols of OpenAI and Anthropic, written from their documents and SDKs.

It refuses what the documents forbid: names of requests that are not unique, files of another purpose, other windows.
Batches advance when they are looked at. What a request is answered, a function determines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Self

from tests.llms.hosted import protocols
from tests.llms.hosted.protocol_server import Behaviour, ok

Body = dict[str, Any]
#: What becomes of a request that gets no response.
EXPIRED, CANCELLED, LOST = "expired", "cancelled", "lost"
Fate = Behaviour | str
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATE, _LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@dataclass
class Batch:
    """A batch: its requests by name, the looks at it that are left before it ends, and what became of it."""

    requests: dict[str, Body]
    looks: int
    cancelled: bool = False
    failed: str = ""
    fates: dict[str, Fate] = field(default_factory=dict)


class BatchServer:
    """Serves between ``with``.

    Args:
        answer: returns what becomes of a request, by its body and how often that body came before.
        looks: how often a batch is not ready when it is looked at.
        statuses: the statuses of the next responses, 200 after them.

    Attributes:
        batches: all batches by their ids, in their order.
        bodies: the bodies of all requests in batches.
        paths: all requests to the server.
        refuse: why batches are refused as a whole; empty if they are not.
    """

    def __init__(
        self,
        answer: Callable[[Body, int], Fate] = lambda _, __: ok(1),
        looks: int = 1,
        statuses: Sequence[int] = (),
    ) -> None:
        self.answer, self.looks, self.statuses = answer, looks, list(statuses)
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.paths: list[str] = []
        self.refuse = ""
        self.garble: Callable[[bytes], bytes] = lambda content: content
        self._seen: Counter[str] = Counter()
        self._lock = Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = False
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def bodies(self) -> list[Body]:
        return [body for batch in self.batches.values() for body in batch.requests.values()]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # -- the protocols ------------------------------------------------------------------------------------------

    def respond(self, method: str, path: str, content_type: str, content: bytes) -> tuple[int, Body | bytes]:
        with self._lock:
            self.paths.append(f"{method} {path}")
            if self.statuses and (status := self.statuses.pop(0)) != 200:
                return status, protocols.error(path, "said by the server")
            for pattern, answer in _ROUTES:
                if found := re.fullmatch(pattern, f"{method} {path}"):
                    try:
                        return answer(self, *found.groups(), **_read(content_type, content))
                    except KeyError:
                        return 404, protocols.error(path, "not found")
                    except (TypeError, ValueError, AssertionError) as error:
                        return 400, protocols.error(path, f"invalid: {error!r}")
            return 404, protocols.error(path, "not found")

    def add(self, requests: Sequence[tuple[str, Body]]) -> str:
        names = [name for name, _ in requests]
        assert names, "no requests"
        assert len(set(names)) == len(names), "custom_id is not unique"
        assert all(_NAME.fullmatch(name) for name in names), "custom_id"
        assert not any(body.get("stream") for _, body in requests), "stream"
        made = f"batch_{len(self.batches) + 1}"
        self.batches[made] = Batch(dict(requests), self.looks, failed=self.refuse)
        return made

    def look(self, name: str) -> Batch:
        batch = self.batches[name]
        if batch.looks > 0 and not batch.failed:
            batch.looks -= 1
        elif not batch.fates and not batch.failed:
            for key, body in batch.requests.items():
                text = json.dumps(body, sort_keys=True)
                fate = self.answer(body, self._seen[text])
                self._seen[text] += 1
                batch.fates[key] = CANCELLED if batch.cancelled and fate == EXPIRED else fate
        return batch

    # OpenAI

    def create_file(self, purpose: str, file: bytes) -> tuple[int, Body]:
        assert purpose == "batch", purpose
        name = f"file-{len(self.files) + 1}"
        self.files[name] = file
        told = {"object": "file", "created_at": 1, "filename": "f", "purpose": purpose, "status": "processed"}
        return 200, {"id": name, "bytes": len(file), **told}

    def create_openai(self, input_file_id: str, endpoint: str, completion_window: str) -> tuple[int, Body]:
        assert (endpoint, completion_window) == ("/v1/chat/completions", "24h")
        lines = [json.loads(line) for line in self.files[input_file_id].splitlines()]
        assert len(lines) <= 50_000
        assert all((line["method"], line["url"]) == ("POST", endpoint) for line in lines)
        made = self.add([(line["custom_id"], line["body"]) for line in lines])
        return 200, self.openai_batch(made, input_file_id)

    def openai_batch(self, name: str, file: str = "file-0") -> Body:
        batch = self.batches[name]
        status = "failed" if batch.failed else "validating" if not batch.fates else "completed"
        if EXPIRED in batch.fates.values():
            status = "expired"
        if batch.cancelled:
            status = "cancelled" if batch.fates else "cancelling"
        good = sum(isinstance(fate, Behaviour) and fate.status == 200 for fate in batch.fates.values())
        counts = {"total": len(batch.requests), "completed": good, "failed": len(batch.fates) - good}
        found: Body = {
            "id": name, "object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": file,
            "completion_window": "24h", "status": status, "created_at": 1, "request_counts": counts,
        }  # fmt: skip
        if batch.failed:
            error = {"code": "token_limit_exceeded", "message": batch.failed, "line": None, "param": None}
            found["errors"] = {"object": "list", "data": [error]}
        if good:
            found["output_file_id"] = f"{name}-output"
        if good < len(batch.fates):
            found["error_file_id"] = f"{name}-errors"
        return found

    def retrieve_openai(self, name: str) -> tuple[int, Body]:
        self.look(name)
        return 200, self.openai_batch(name)

    def read_file(self, name: str, which: str) -> tuple[int, bytes]:
        lines = []
        for key, fate in self.batches[name].fates.items():
            line: Body = {"id": f"batch_req_{key}", "custom_id": key, "response": None, "error": None}
            good = isinstance(fate, Behaviour) and fate.status == 200
            if fate == LOST or good != (which == "output"):
                continue
            if isinstance(fate, Behaviour):
                body = self.batches[name].requests[key]
                said = protocols.openai_chat(fate, body) if good else protocols.error("/v1", fate.message)
                if fate.page is not None:
                    said = {"page": str(fate.page)}
                line["response"] = {"status_code": fate.status, "request_id": "r", "body": {**said, **fate.changes}}
            else:
                line["error"] = {"code": f"batch_{fate}", "message": f"This request is {fate}."}
            lines.append(json.dumps(line).encode())
        return 200, self.garble(b"\n".join(reversed(lines)) + b"\n")

    def cancel_openai(self, name: str) -> tuple[int, Body]:
        self.batches[name].cancelled = True
        return 200, self.openai_batch(name)

    # Anthropic

    def create_anthropic(self, requests: list[Body]) -> tuple[int, Body]:
        assert len(requests) <= 100_000
        return 200, self.anthropic_batch(self.add([(one["custom_id"], one["params"]) for one in requests]))

    def anthropic_batch(self, name: str) -> Body:
        batch = self.batches[name]
        kinds = ("succeeded", "errored", "canceled", "expired")
        counts = dict.fromkeys(kinds, 0) | Counter(_anthropic_type(fate) for fate in batch.fates.values())
        counts["processing"] = len(batch.requests) - len(batch.fates)
        return {
            "id": name, "type": "message_batch", "created_at": _DATE, "expires_at": _LATER,
            "processing_status": "ended" if batch.fates else "canceling" if batch.cancelled else "in_progress",
            "request_counts": counts,
            "archived_at": None, "cancel_initiated_at": None, "ended_at": _DATE if batch.fates else None,
            "results_url": f"http://nobody.invalid/{name}" if batch.fates else None,
        }  # fmt: skip

    def retrieve_anthropic(self, name: str) -> tuple[int, Body]:
        self.look(name)
        return 200, self.anthropic_batch(name)

    def read_results(self, name: str) -> tuple[int, bytes]:
        lines = []
        for key, fate in self.batches[name].fates.items():
            kind = _anthropic_type(fate)
            result: Body = {"type": kind}
            if isinstance(fate, Behaviour) and kind == "succeeded":
                said = protocols.anthropic_messages(fate, self.batches[name].requests[key])
                result["message"] = {**said, **fate.changes}
            elif isinstance(fate, Behaviour):
                result["error"] = _anthropic_error(fate)
            if fate != LOST:
                lines.append(json.dumps({"custom_id": key, "result": result}).encode())
        return 200, self.garble(b"\n".join(reversed(lines)))

    def cancel_anthropic(self, name: str) -> tuple[int, Body]:
        self.batches[name].cancelled = True
        return 200, self.anthropic_batch(name)


def _anthropic_type(fate: Fate) -> str:
    if isinstance(fate, str):
        return {EXPIRED: "expired", CANCELLED: "canceled"}.get(fate, "succeeded")
    return "succeeded" if fate.status == 200 else "errored"


def _anthropic_error(fate: Behaviour) -> Body:
    kinds = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
    error = {"type": kinds.get(fate.status, "invalid_request_error"), "message": fate.message}
    return {"type": "error", "error": error, "request_id": "r"}


_ROUTES: list[tuple[str, Callable[..., tuple[int, Body | bytes]]]] = [
    (r"POST /v1/files", BatchServer.create_file),
    (r"POST /v1/batches", BatchServer.create_openai),
    (r"GET /v1/batches/([^/]+)", BatchServer.retrieve_openai),
    (r"POST /v1/batches/([^/]+)/cancel", BatchServer.cancel_openai),
    (r"GET /v1/files/(.+)-(output|errors)/content", BatchServer.read_file),
    (r"POST /v1/messages/batches", BatchServer.create_anthropic),
    (r"GET /v1/messages/batches/([^/]+)", BatchServer.retrieve_anthropic),
    (r"POST /v1/messages/batches/([^/]+)/cancel", BatchServer.cancel_anthropic),
    (r"GET /v1/messages/batches/([^/]+)/results", BatchServer.read_results),
]


def _read(content_type: str, content: bytes) -> dict[str, Any]:
    """The arguments of a request: JSON, or a form with a file."""
    if not content_type.startswith("multipart/"):
        return json.loads(content) if content else {}
    page: Message = BytesParser().parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + content)
    parts: dict[str, Any] = {}
    for part in page.walk():
        name, data = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if isinstance(data, bytes):
            parts[str(name)] = data if name == "file" else data.decode()
    return parts


def _handler(server: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, said = server.respond(self.command, self.path, self.headers.get("content-type", ""), content)
            page = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header(
                "content-type", "application/json" if isinstance(said, dict) else "application/octet-stream"
            )
            self.send_header("content-length", str(len(page)))
            if status != 200:
                self.send_header("retry-after", "0.01")
            self.end_headers()
            self.wfile.write(page)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler
