"""The server: the page with its scripts and styles, what was opened, and the answers to questions as they come."""

from __future__ import annotations

import json
import re
import secrets
from importlib.resources import files

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from formal_llm.errors import FormalLLMError
from formal_llm.llms.llm import provider_forms
from formal_llm.studio.opened import Changed, Opened, list_endings
from formal_llm.studio.questions import QUESTIONS
from formal_llm.studio.worker import Workers

#: The most bytes of a question.
MOST_BYTES = 32_000_000
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class OriginGuard:
    """Lets through what comes from the studio's own page.

    Args:
        app: what is guarded; it sees paths without the token.
        token: the first part of every path.
        port: the port of the server, as browsers name it.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks WebSocket: the handshake is closed
        refusal = self._find_refusal(scope)
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0], _HEADERS)(scope, receive, send)
            return
        path = scope["path"][len(self._token) + 1 :]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, guarded)

    def _find_refusal(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the text with which a request is refused; None where it is not."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return 421, "this server answers to its own address only"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin not in self._origins:
            return 403, "this origin may not ask"
        if site not in (None, "same-origin", "none"):
            return 403, "another site may not ask"
        token = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self._token.encode()) or scope["path"] == f"/{token}":
            return 404, "there is nothing here: open the address that the terminal shows, with its token"
        if scope["method"] == "POST":
            if origin is None:
                return 403, "only the page may ask"
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return 415, "questions are JSON"
            length = headers.get("content-length", "")
            if not length.isdecimal() or int(length) > MOST_BYTES:
                return 413, f"a question has at most {MOST_BYTES:,} bytes, and says how many"
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "GET and POST are all there is"
        return None


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
            "writable": opened.path is not None, "followed": opened.followed is not None,
            "endings": [one for one in list_endings() if one != ".mermaid"], "llms": forms,
        })  # fmt: skip

    async def saved(request: Request) -> Response:
        asked = await _read_json(request)
        text, version = asked.get("text"), asked.get("version")
        if not isinstance(text, str) or not isinstance(version, str):
            return JSONResponse({"problem": "a text and its version are saved"}, 400)
        try:
            return JSONResponse({"version": opened.save(text, version)})
        except FormalLLMError as error:
            return JSONResponse({"problem": str(error)}, 409 if isinstance(error, Changed) else 400)

    async def followed(_: Request) -> Response:
        try:
            return JSONResponse({"text": opened.read_followed()})
        except FormalLLMError as error:
            return JSONResponse({"problem": str(error)}, 400)

    async def answered(request: Request) -> Response:
        asked = await _read_json(request)
        question, lane = asked.get("question"), asked.get("lane")
        if not isinstance(question, str) or question not in QUESTIONS:
            return JSONResponse({"problem": "there is no such question"}, 400)
        if not isinstance(lane, str) or not _NAME.fullmatch(lane):
            return JSONResponse({"problem": "a question has a lane"}, 400)
        parts = workers.worker(lane).ask(asked, QUESTIONS[question][1])
        return StreamingResponse(parts, media_type="application/x-ndjson")

    routes = [
        Route("/", shown), Route("/page/{name}", shown), Route("/api/start", started),
        Route("/api/followed", followed),
        Route("/api/save", saved, methods=["POST"]), Route("/api/ask", answered, methods=["POST"]),
    ]  # fmt: skip
    return OriginGuard(Starlette(routes=routes), token, port)


async def _read_json(request: Request) -> dict[str, object]:
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
