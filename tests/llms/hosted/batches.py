"""The batch interfaces of OpenAI and Anthropic, for a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.llms.hosted.wire_server import FORMS, Asked, Reply

#: Writes the answer to the body of one request; a status and a message for an error.
Writing = Callable[[dict[str, Any]], "str | tuple[int, str]"]
_DATES = {"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z", "archived_at": None}


class Batches:
    """Answers requests for batches.

    Args:
        write: what is answered.
        looks: how often a batch is looked at before it has ended.

    Attributes:
        sizes: the number of requests of each batch.
        cancelled: the batches that were cancelled.
    """

    def __init__(self, write: Writing, looks: int = 1) -> None:
        self._write = write
        self._looks = looks
        self._files: dict[str, str] = {}
        self._batches: dict[str, list[dict[str, Any]]] = {}
        self._looked: dict[str, int] = {}
        self._host = ""
        self.cancelled: list[str] = []

    @property
    def sizes(self) -> list[int]:
        """The number of requests of each batch."""
        return [len(lines) for lines in self._batches.values()]

    def __call__(self, asked: Asked) -> Reply:
        """Answer one request."""
        self._host = asked.headers["host"]
        *_, last = path = asked.path.rstrip("/").split("/")
        if path[-2:] == ["v1", "files"]:
            self._files[name := f"file-{len(self._files)}"] = asked.body["raw"].decode()
            return Reply(
                {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}
            )
        if last == "content":
            return Reply("\n".join(self._answer_line(one) for one in self._batches[path[-2].removeprefix("out-")]))
        if "input_file_id" in asked.body:
            lines = [one for one in self._files[asked.body["input_file_id"]].splitlines() if one.startswith("{")]
            return Reply(self._begin([json.loads(one) for one in lines], self._describe))
        if "requests" in asked.body:
            return Reply(self._begin(asked.body["requests"], self._describe_message_batch))
        if last == "results":
            return Reply("\n".join(self._answer_request(one) for one in self._batches[path[-2]]))
        if last == "cancel":
            self.cancelled.append(path[-2])
            last = path[-2]
        if last in self._batches:
            self._looked[last] += 1
            return Reply((self._describe_message_batch if "messages" in path else self._describe)(last))
        return Reply({"id": last, "object": "file", "deleted": True})

    def _begin(self, lines: list[dict[str, Any]], describe: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        name = f"batch_{len(self._batches)}"
        self._batches[name], self._looked[name] = lines, 0
        return describe(name)

    def _has_ended(self, name: str) -> bool:
        return self._looked[name] > self._looks or name in self.cancelled

    def _describe(self, name: str) -> dict[str, Any]:
        done, count = self._has_ended(name), len(self._batches[name])
        counts = {"total": count, "completed": count if done else 0, "failed": 0}
        return {
            "id": name, "object": "batch", "endpoint": "/v1/responses", "input_file_id": "file-0", "created_at": 1,
            "completion_window": "24h", "status": "completed" if done else "in_progress", "request_counts": counts,
            "output_file_id": f"out-{name}" if done else None,
        }  # fmt: skip

    def _describe_message_batch(self, name: str) -> dict[str, Any]:
        done, count = self._has_ended(name), len(self._batches[name])
        counts = {"processing": 0, "succeeded": count, "errored": 0, "canceled": 0, "expired": 0}
        return {
            "id": name, "type": "message_batch", "processing_status": "ended" if done else "in_progress", **_DATES,
            "request_counts": counts, "ended_at": _DATES["created_at"] if done else None, "cancel_initiated_at": None,
            "results_url": f"http://{self._host}/v1/messages/batches/{name}/results" if done else None,
        }  # fmt: skip

    def _answer_line(self, line: dict[str, Any]) -> str:
        said = self._write(line["body"])
        status, body = (200, FORMS["responses"].write(said, (), "stop")) if isinstance(said, str) else (
            said[0], {"error": {"message": said[1]}}
        )  # fmt: skip
        response = {"status_code": status, "request_id": "r", "body": body}
        return json.dumps({"id": "l", "custom_id": line["custom_id"], "response": response, "error": None})

    def _answer_request(self, request: dict[str, Any]) -> str:
        said = self._write(request["params"])
        if isinstance(said, str):
            result: dict[str, Any] = {"type": "succeeded", "message": FORMS["anthropic"].write(said, (), "stop")}
        else:
            error = {"type": "invalid_request_error", "message": said[1]}
            result = {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}
        return json.dumps({"custom_id": request["custom_id"], "result": result})
