"""Empty, cut, refused and dropped answers of five providers: an error, or asked for again, and never an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from formal_llm.agents import Agent, Transcript
from formal_llm.agents.running import Run
from formal_llm.errors import ProviderError, WritingError
from formal_llm.tools import tool
from tests.tool_server import Asked, Ending, ToolServer, make_llm


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def answer(native: bool, text: str) -> str:
    return text if native else f"[Final Thought] f [Answer] {text}".rstrip()


PROVIDERS = ("openai", "vllm", "llamacpp", "ollama", "anthropic")
TURNS = [(provider, True, awaited) for provider in PROVIDERS for awaited in (False, True)]
TEXTS = [(provider, False, awaited) for provider in ("openai", "anthropic") for awaited in (False, True)]


@pytest.mark.parametrize(("provider", "native", "awaited"), [*TURNS, *TEXTS])
@pytest.mark.parametrize("ending", ["empty", "cut", "refused", "dropped"])
def test_what_is_no_answer_is_asked_for_again_or_an_error(
    provider: str, native: bool, awaited: bool, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    faults = 1

    def model(asked: Asked) -> tuple[str, list[Any], Ending]:
        if len(server.asked) > faults:
            # Where a text was begun, what is asked for is its rest.
            return "forty-two" if ending != "refused" else answer(native, "forty-two"), [], "end"
        text = answer(native, "" if ending == "empty" else "forty-one, or rather")
        return text, [], "end" if ending == "empty" else ending  # type: ignore[return-value]

    def carry_out(run: Run) -> Transcript:
        return asyncio.run(run.arun_to_end()) if awaited else run.run_to_end()

    with ToolServer(model) as server:
        llm = make_llm(provider, server)
        agent = Agent("react", llm, [add], native=native, streaming=ending == "dropped")
        run = agent.start("q")
        if ending == "refused":
            with pytest.raises(WritingError, match="it was refused"):
                carry_out(run)
            assert run.transcript.usage.requests == 1
        else:
            made = carry_out(run)
            assert made.answer.endswith("forty-two") and 2 <= made.usage.requests == len(server.asked) <= 3
            assert made.usage.estimated == (ending == "dropped")
        if ending != "dropped":
            assert run.transcript.usage.input_tokens == sum(asked.read for asked in server.asked)
        # Where it happens again and again, the run ends with an error, and its usage is whole.
        faults, before = 99, len(server.asked)
        again = agent.start("q")
        with pytest.raises((WritingError, ProviderError)):
            carry_out(again)
        assert again.transcript.usage.requests == len(server.asked) - before
