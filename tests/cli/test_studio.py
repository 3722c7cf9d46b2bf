"""``formal-llm studio``; what it serves is tried in ``tests/studio``."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from formal_llm.cli import studio
from tests.cli.inside import runner

run = runner("studio")


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    code, _, said = run(str(tmp_path / "a.txt"), "--no-browser")
    assert code == 2
    assert "the ending tells the notation" in said


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, said = run("--no-browser", "--port", str(port))
    assert code == 2
    assert f"port {port} is taken by another program" in " ".join(said.split())


def test_without_the_extra_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio, "find_spec", lambda _: None)
    code, _, said = run("--no-browser")
    assert code != 0
    assert 'pip install "formal-llm[studio]"' in " ".join(said.split())
