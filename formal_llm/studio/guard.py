"""Who may talk to the studio: its own page, and nobody else.

The address has a token that cannot be guessed, so another page in the same browser, or another user of this machine,
does not know where to ask. Should it know, it is refused all the same:

- ``Host`` has to be this machine by name or number, so that no other name that leads here (DNS rebinding) is answered;
- ``Origin`` has to be the studio's own where there is one, and there has to be one where something is asked;
- a browser that says that another site asks (``Sec-Fetch-Site``) is believed;
- questions are JSON, which no form can send, and no answer carries a header that lets other origins read it.

What the page may do is bounded by its policy: scripts and styles from here only, none within the page, no frames.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        refusal = self._refusal(scope)
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0], _HEADERS)(scope, receive, send)
            return
        path = scope["path"][len(self._token) + 1 :]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
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
