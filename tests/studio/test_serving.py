"""The studio as a program: who may talk to it, what it answers, how it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

pytest.importorskip("uvicorn")

from formal_llm.studio.serving import PortTaken, listening
from tests.studio.served import Served, studio
from tests.studio.test_worker import LONG
from tests.studio.texts import TEA


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "tea.cfg").write_text(TEA, encoding="utf-8")
    with studio("tea.cfg", cwd=folder) as found:
        yield found


def test_the_page_and_its_files(served: Served) -> None:
    page = httpx2.get(served.address)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    names = {part.partition('"')[0] for part in page.text.split('"page/')[1:]}
    assert {"main.js", "studio.css"} <= names
    for name in names:
        assert httpx2.get(f"{served.address}page/{name}").status_code == 200
    assert httpx2.get(f"{served.address}page/..%2Fserver.py").status_code == 404
    assert httpx2.get(f"{served.address}page/nothing.js").status_code == 404


def test_what_a_page_may_do_is_bounded(served: Served) -> None:
    headers = httpx2.get(served.address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    for response in (httpx2.get(served.address), served.post("api/ask", {}), httpx2.get(served.origin)):
        assert not [name for name in response.headers if name.startswith("access-control")]
        assert response.headers["content-security-policy"]
        assert "server" not in response.headers


def test_answers_come_in_parts(served: Served) -> None:
    names = [part["part"] for part in served.ask("check", text=TEA)]
    assert names == ["problems", "picture", "shortest", "count", "samples", "end"]


@pytest.mark.parametrize("path", ["", "/", "/wrong/", "/wrong/api/start", "/api/start"])
def test_without_the_token_there_is_nothing(served: Served, path: str) -> None:
    assert httpx2.get(served.origin + path).status_code == 404
    assert httpx2.get(served.address.rstrip("/")).status_code == 404
    assert httpx2.get(served.address[:-2] + "/").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},  # a name that was made to lead to this machine (DNS rebinding)
        {"host": "evil.example:{port}"},
        {"origin": "http://evil.example"},
        {"origin": "null"},  # a page in a sandbox, or a file
        {"origin": "http://127.0.0.1:1"},  # another server of this machine
        {"origin": "https://127.0.0.1:{port}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_page_is_refused_even_with_the_token(served: Served, headers: dict[str, str]) -> None:
    port = served.origin.rpartition(":")[2]
    headers = {name: value.format(port=port) for name, value in headers.items()}
    for response in (
        served.post("api/ask", {"question": "check", "lane": "x", "text": TEA, "ending": ".cfg"}, **headers),
        httpx2.get(served.address + "api/start", headers=headers),
        httpx2.get(served.address, headers=headers),
    ):
        assert response.status_code in (403, 421)
        assert "cup of tea" not in response.text
        assert not [name for name in response.headers if name.startswith("access-control")]


def test_a_form_cannot_ask(served: Served) -> None:
    question = b'{"question": "check", "lane": "x", "text": "S -> a"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        headers = {"content-type": kind, "origin": served.origin}
        assert httpx2.post(served.address + "api/ask", content=question, headers=headers).status_code == 415
    no_origin = {"content-type": "application/json"}
    assert httpx2.post(served.address + "api/ask", content=question, headers=no_origin).status_code == 403
    for method in ("OPTIONS", "PUT", "DELETE"):
        response = httpx2.request(method, served.address + "api/ask", headers={"origin": served.origin})
        assert response.status_code == 405


def test_questions_that_are_none(served: Served) -> None:
    for data in (
        {},
        [],
        3,
        {"question": "hack", "lane": "x"},
        {"question": "check"},
        {"question": "check", "lane": "/"},
    ):
        assert served.post("api/ask", data).status_code == 400


def test_a_new_question_takes_the_place_of_the_one_before(served: Served) -> None:
    """A count that would take minutes is given up at once when something else is asked in its lane."""
    hard = "S -> " + " | ".join(f"a{n} S b{n}" for n in range(40)) + " | c | S S\n%require 3 a1\n%limit 9\n"
    url, headers = served.address + "api/ask", {"origin": served.origin}
    asked = {"question": "check", "lane": "typed", "text": hard, "ending": ".cfg"}
    with httpx2.stream("POST", url, json=asked, headers=headers, timeout=60) as first:
        lines = first.iter_lines()
        assert '"problems"' in next(lines)  # it is under way
        assert served.ask("check", "typed", text=TEA)[-1]["part"] == "end"
        rest = list(lines)
    assert '"given up"' in rest[-1] or '"end"' in rest[-1]


def test_it_listens_on_this_machine_only(served: Served) -> None:
    port = int(served.origin.rpartition(":")[2])
    assert served.origin == f"http://127.0.0.1:{port}"
    # From a process of its own: no test may connect to another address.
    code = f"import socket; socket.create_connection(('127.0.0.2', {port}), 2)"
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert "Error" in tried.stderr


def test_a_port_that_is_taken_is_told(served: Served) -> None:
    port = int(served.origin.rpartition(":")[2])
    with pytest.raises(PortTaken, match=f"port {port} is taken"):
        listening(port)
    with listening(0) as free:
        assert free.getsockname()[0] == "127.0.0.1"


def test_a_file_is_saved_unless_somebody_else_changed_it(tmp_path: Path) -> None:
    file = tmp_path / "tea.cfg"
    file.write_text(TEA, encoding="utf-8")
    with studio(str(file)) as found:
        start = httpx2.get(found.address + "api/start").json()
        assert start["text"] == TEA
        assert start["writable"]
        done = found.post("api/save", {"text": TEA + "# more\n", "version": start["version"]})
        assert file.read_text(encoding="utf-8") == TEA + "# more\n"
        file.write_text("somebody else\n", encoding="utf-8")
        again = found.post("api/save", {"text": "mine", "version": done.json()["version"]})
        assert again.status_code == 409
        assert file.read_text(encoding="utf-8") == "somebody else\n"


def test_ctrl_c_ends_answers_that_are_under_way(tmp_path: Path) -> None:
    """The end is clean (``studio`` looks at it), and the page is told."""
    told: list[str] = []
    with studio() as found:
        asked = {"question": "compare", "lane": "long", **LONG}
        headers = {"origin": found.origin}
        stream = httpx2.stream("POST", found.address + "api/ask", json=asked, headers=headers, timeout=60)
        response = stream.__enter__()
        reader = threading.Thread(target=lambda: told.extend(response.iter_lines()))
        reader.start()
        found.ask("check", "other", text=TEA)  # by now the first one is being worked on
    reader.join(30)
    stream.__exit__(None, None, None)
    assert "given up" in told[-1]
