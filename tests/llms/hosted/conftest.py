from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm.llms.hosted import pace
from formal_llm.llms.question import Message, Question
from tests.llms.hosted.adapters import ADAPTERS, OF_EACH_SDK, Adapter
from tests.llms.hosted.protocol_server import ProtocolServer


@pytest.fixture(scope="session")
def running_server() -> Iterator[ProtocolServer]:
    """The server, reached directly even where a proxy is set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        server = ProtocolServer()
        server.start()
        yield server
        server.stop()


@pytest.fixture
def server(running_server: ProtocolServer) -> ProtocolServer:
    """A server of all protocols on this machine, with nothing to say yet."""
    running_server.reset()
    return running_server


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.Runner]:
    """An event loop for the whole run: the clients that are awaited belong to one."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def made(running_server: ProtocolServer, loop: asyncio.Runner) -> Iterator[Callable[..., Any]]:
    """A function that makes an adapter, once for each set of settings: making a client takes longer than asking."""
    llms: dict[Any, Any] = {}

    def make(adapter: Adapter, **more: Any) -> Any:
        key = (adapter.name, *sorted(more.items()))
        if key not in llms:
            llms[key] = adapter.make(running_server.url, **more)
        return llms[key]

    yield make
    for llm in llms.values():
        loop.run(llm.aclose())
        llm.client.close()


@pytest.fixture(params=OF_EACH_SDK, ids=str)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """An adapter of each SDK in turn; see :data:`~tests.llms.hosted.adapters.each_adapter` for all."""
    return request.param


@pytest.fixture
def choose(loop: asyncio.Runner) -> Callable[[Any, Question], Any]:
    """A function that asks an LLM a question: one half of the adapters awaited, the others in waiting."""

    def ask(llm: Any, question: Question) -> Any:
        awaited = type(llm).__name__ in ("AnthropicLLM", "LlamaCppLLM", "OllamaLLM")
        return loop.run(llm.achoose(question)) if awaited else llm.choose(question)

    return ask


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which no SDK finds a key or an address, whatever the machine's own holds."""
    for adapter in ADAPTERS:
        monkeypatch.delenv(adapter.key, raising=False)
        monkeypatch.delenv(adapter.url, raising=False)
    for name in ("ADMIN_KEY", "ORG_ID", "PROJECT_ID", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    for name in ("AUTH_TOKEN", "PROFILE", "CONFIG_DIR", "FEDERATION_RULE_ID", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    # The SDK of Anthropic also looks for a profile below the home directory.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))


@pytest.fixture
def make_question() -> Callable[..., Question]:
    """A function that makes a question with three options after a short chat."""

    def make(*, several: bool = False, count: int = 3, **more: Any) -> Question:
        earlier = [Message("system", "Be brief."), Message("user", "1: a"), Message("assistant", "1")]
        options = [*["red", "green", "blue"][:count], *(f"hue {number}" for number in range(4, count + 1))]
        return Question("Which one?", options, several=several, messages=earlier, **more)

    return make


@pytest.fixture(autouse=True)
def without_paces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is slowed down by what a server refused in another one."""
    monkeypatch.setattr(pace, "_PACES", {})
    monkeypatch.setattr(pace, "SHORTEST", 0.01)
