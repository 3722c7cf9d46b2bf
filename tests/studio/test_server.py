"""The files of the page, and how it is wired; what it answers is tried in ``test_serving``."""

import asyncio
import re

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from formal_llm.studio.server import MOST_BYTES, OriginGuard

pytest.importorskip("starlette")

from formal_llm.studio.server import page_files


def test_the_page_needs_nothing_from_elsewhere() -> None:
    files = page_files()
    assert {"index.html", "main.js", "studio.css"} <= files.keys()
    for name, (data, _) in files.items():
        text = data.decode()
        found = [
            address for address in re.findall(r"https?://[^\s\"')]+", text) if "www.w3.org/2000/svg" not in address
        ]
        assert found == [], name


def test_scripts_import_files_that_are_there() -> None:
    files = page_files()
    for name, (data, media) in files.items():
        if media == "text/javascript":
            for imported in re.findall(r'from "\./([\w.]+)"', data.decode()):
                assert imported in files, f"{name} imports {imported}"


def test_no_script_or_style_stands_in_the_page_and_no_text_becomes_markup() -> None:
    files = page_files()
    page = files["index.html"][0].decode()
    assert re.findall(r"<script(?![^>]* src=)[^>]*>|<style|\son\w+=|\sstyle=", page) == []
    for data, media in files.values():
        if media == "text/javascript":
            assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", data.decode())


def test_every_control_that_a_script_looks_for_is_in_the_page() -> None:
    files = page_files()
    ids = set(re.findall(r'\bid="([\w-]+)"', files["index.html"][0].decode()))
    made = {name for data, _ in files.values() for name in re.findall(r'\bid: "([\w-]+)"', data.decode())}
    for data, media in files.values():
        if media == "text/javascript":
            assert set(re.findall(r'byId\("([\w-]+)"\)', data.decode())) <= ids | made


pytest.importorskip("starlette")


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
