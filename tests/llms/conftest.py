from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from protocol_server import ProtocolServer

from formal_llm.llms.question import Message, Question


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProtocolServer]:
    """A server of both protocols on this machine, reached directly even where a proxy is set."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ProtocolServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which no SDK finds a key, whatever the machine's own holds."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("API_KEY", "AUTH_TOKEN", "PROFILE", "CONFIG_DIR", "FEDERATION_RULE_ID"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    # The SDK of Anthropic also looks for a profile below the home directory.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))


@pytest.fixture
def make_question() -> Callable[..., Question]:
    """A function that makes a question with three options after a short chat."""

    def make(*, several: bool = False) -> Question:
        earlier = [Message("system", "Be brief."), Message("user", "1: a"), Message("assistant", "1")]
        return Question("Which one?", ["red", "green", "blue"], several=several, messages=earlier)

    return make
