"""A hub on this machine: as much of one as the real client asks for."""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "a" * 40


class Hub(ThreadingHTTPServer):
    """As much of a hub as the client asks for: what a repository has, and its files."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.server.asked.append(self.path)
        parts = self.path.split("?")[0].strip("/").split("/")
        about = parts[0] == "api"
        folder = self.server.root.joinpath(*(parts[2:4] if about else parts[:2]))
        if not folder.is_dir() or (about and len(parts) < 4):
            self.send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif about:
            files = [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
            named = {"id": "/".join(parts[2:4]), "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]}
            listed = [{"type": "file", "path": file, "size": 1, "oid": "b" * 40} for file in files]
            self.send(
                200, json.dumps(listed if "tree" in parts else named).encode(), {"Content-Type": "application/json"}
            )
        elif (file := folder.joinpath(*parts[4:])).is_file():
            data = file.read_bytes()
            self.send(200, data, {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(data).hexdigest()}"'})
        else:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})

    def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass
