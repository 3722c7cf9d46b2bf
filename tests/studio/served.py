"""The studio as a program of its own, for tests that talk to it as a browser does, or as a stranger."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2


@dataclass
class Served:
    """A studio that runs."""

    address: str
    process: subprocess.Popen[str]

    @property
    def origin(self) -> str:
        """Whose page it is."""
        return self.address[: self.address.index("/", 8)]

    @property
    def token(self) -> str:
        """The secret part."""
        return self.address.rstrip("/").rpartition("/")[2]

    def post(self, path: str, data: object, **headers: str) -> httpx2.Response:
        """Ask as the page does."""
        return httpx2.post(self.address + path, json=data, headers={"origin": self.origin, **headers}, timeout=60)

    def ask(self, question: str, lane: str = "check", **data: object) -> list[dict[str, object]]:
        """The parts of an answer."""
        response = self.post("api/ask", {"question": question, "lane": lane, "ending": ".cfg", **data})
        assert response.status_code == 200, response.text
        return [httpx2.Response(200, content=line).json() for line in response.content.splitlines()]


@contextmanager
def studio(*arguments: str, cwd: Path | None = None) -> Iterator[Served]:
    """A studio, ended by Ctrl-C, from which it has to end well."""
    code = "from formal_llm.cli.main import main; main()"
    command = [sys.executable, "-c", code, "studio", "--no-browser", *arguments]
    environment = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + process.stderr.read()
        yield Served(found[0], process)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 0, rest
        assert rest.endswith("the studio is closed\n")
        assert "Traceback" not in rest, rest
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
