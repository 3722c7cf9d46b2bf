"""The server: the page with its scripts and styles, what was opened, and the answers to questions as they come."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from formal_llm.automata.notation.files import endings
from formal_llm.errors import FormalLLMError
from formal_llm.llms.llm import provider_forms
from formal_llm.studio.guard import MOST_BYTES, OriginGuard
from formal_llm.studio.opened import Changed, Opened
from formal_llm.studio.questions import QUESTIONS
from formal_llm.studio.worker import Workers

_MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: What a page calls itself and its lanes.
_NAME = re.compile(r"[\w-]{1,64}")


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page, each with its media type."""
    found = {}
    for file in files("formal_llm.studio").joinpath("page").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if ending in _MEDIA:
            found[file.name] = (file.read_bytes(), _MEDIA[ending])
    return found


def application(opened: Opened, workers: Workers, token: str, port: int) -> ASGIApp:
    """The studio as an application: everything under ``/TOKEN/``, for its own page only.

    Args:
        opened: what is edited.
        workers: who answers.
        token: the secret part of the address.
        port: the port at which browsers find it.
    """
    page = page_files()

    async def shown(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        if name not in page:
            return Response("there is no such file", 404)
        data, media = page[name]
        return Response(data, media_type=media)

    async def started(_: Request) -> Response:
        forms = {form: meaning for form, meaning in provider_forms().items() if form != "person"}
        return JSONResponse({
            "name": opened.name, "ending": opened.ending, "text": opened.text, "version": opened.version,
            "writable": opened.path is not None, "endings": [one for one in endings() if one != ".mermaid"],
            "llms": forms,
        })  # fmt: skip

    async def saved(request: Request) -> Response:
        asked = await _json(request)
        text, version = asked.get("text"), asked.get("version")
        if not isinstance(text, str) or not isinstance(version, str):
            return JSONResponse({"problem": "a text and its version are saved"}, 400)
        try:
            return JSONResponse({"version": opened.save(text, version)})
        except FormalLLMError as error:
            return JSONResponse({"problem": str(error)}, 409 if isinstance(error, Changed) else 400)

    async def answered(request: Request) -> Response:
        asked = await _json(request)
        question, lane = asked.get("question"), asked.get("lane")
        if not isinstance(question, str) or question not in QUESTIONS:
            return JSONResponse({"problem": "there is no such question"}, 400)
        if not isinstance(lane, str) or not _NAME.fullmatch(lane):
            return JSONResponse({"problem": "a question has a lane"}, 400)
        parts = workers.worker(lane).ask(asked, QUESTIONS[question][1])
        return StreamingResponse(parts, media_type="application/x-ndjson")

    routes = [
        Route("/", shown), Route("/page/{name}", shown), Route("/api/start", started),
        Route("/api/save", saved, methods=["POST"]), Route("/api/ask", answered, methods=["POST"]),
    ]  # fmt: skip
    return OriginGuard(Starlette(routes=routes), token, port)


async def _json(request: Request) -> dict[str, object]:
    """The JSON object of a request; an empty one where it is none."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
