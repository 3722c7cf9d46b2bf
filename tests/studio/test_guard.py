"""Who is let through; most of it is tried over a real connection in ``test_serving``."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

pytest.importorskip("starlette")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from formal_llm.studio.guard import MOST_BYTES, OriginGuard


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.url.path)


def asked(method: str = "GET", path: str = "/secret/inside", **headers: str) -> httpx2.Response:
    app = OriginGuard(Starlette(routes=[Route("/inside", echo, methods=["GET", "POST"])]), "secret", 8000)

    async def main() -> httpx2.Response:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(main())


def test_the_page_is_let_through_without_the_token_in_its_path() -> None:
    assert asked().text == "/inside"
    assert asked(host="localhost:8000").status_code == 200
    json = {"origin": "http://127.0.0.1:8000", "content-type": "application/json", "content-length": "0"}
    assert asked("POST", **json).status_code == 200


@pytest.mark.parametrize("path", ["/", "/secret", "/secre/inside", "/secrets/inside", "/inside", "//secret/inside"])
def test_the_token_is_the_first_part_of_the_path(path: str) -> None:
    response = asked(path=path) if not path.startswith("//") else asked(path="http://127.0.0.1:8000" + path)
    assert response.status_code == 404


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    headers = {"origin": "http://127.0.0.1:8000", "content-type": "application/json"}
    assert asked("POST", **headers, **{"content-length": str(MOST_BYTES + 1)}).status_code == 413
