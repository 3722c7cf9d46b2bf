"""The adapters under test: how each is made for the test server, and what it has of what not all have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from formal_llm.llms.hosted.adapter import HostedLLM
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted.protocols import FROM_CACHE, INPUT_TOKENS, INTO_CACHE, OUTPUT_TOKENS


@dataclass(frozen=True)
class Adapter:
    """One adapter in one of its ways to ask.

    Attributes:
        name: its name in a test.
        module, kind: where its class is.
        path: what it asks for on the server, and ``prefix`` what of that is part of the address.
        arguments: what it is made with.
        key, url: the environment variables with its key and address.
        needs_key: whether there is no answer without a key.
        writes: whether it has a model that writes text.
        sdk: the SDK that makes its requests.
        caches: which parts of the input are counted as read from, and put into, the cache.
    """

    name: str
    module: str
    kind: str
    path: str
    key: str
    url: str
    prefix: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs_key: bool = False
    writes: bool = True
    sdk: str = "openai"
    caches: tuple[int, int] = (FROM_CACHE, INTO_CACHE)

    def __str__(self) -> str:
        return self.name

    @property
    def one(self) -> TokenUsage:
        """What one request costs."""
        return TokenUsage(1, INPUT_TOKENS, OUTPUT_TOKENS, *self.caches)

    @property
    def type(self) -> type[HostedLLM]:
        return getattr(import_module(f"formal_llm.llms.hosted.{self.module}"), self.kind)

    @property
    def provider(self) -> str:
        return f"{self.module}:test-model"

    def make(self, server: str, **more: Any) -> Any:
        """One that asks the server at this address."""
        settings = {"base_url": server + self.prefix, "api_key": "dummy-key", "timeout": 5, "max_retries": 0}
        return self.type("test-model", **{**settings, **self.arguments, **more})


ADAPTERS = [
    Adapter(
        "openai-chat", "openai", "OpenAILLM", "/v1/chat/completions", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1",
        needs_key=True,
    ),
    Adapter(
        "openai-decisions", "openai", "OpenAILLM", "/v1/decisions", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1",
        {"api": "decisions"}, needs_key=True, writes=False,
    ),
    Adapter(
        "anthropic-schema", "anthropic", "AnthropicLLM", "/v1/messages", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        needs_key=True, sdk="anthropic",
    ),
    Adapter(
        "anthropic-tool", "anthropic", "AnthropicLLM", "/v1/messages", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        arguments={"method": "tool"}, needs_key=True, sdk="anthropic",
    ),
    Adapter("vllm", "vllm", "VLLM", "/v1/chat/completions", "VLLM_API_KEY", "VLLM_BASE_URL", "/v1"),
    Adapter(
        "llamacpp", "llamacpp", "LlamaCppLLM", "/v1/chat/completions", "LLAMACPP_API_KEY", "LLAMACPP_BASE_URL", "/v1"
    ),
    Adapter("ollama", "ollama", "OllamaLLM", "/api/chat", "OLLAMA_API_KEY", "OLLAMA_HOST", caches=(0, 0)),
]  # fmt: skip
#: One of each SDK: what is handled in shared code is tested with these.
OF_EACH_SDK = [adapter for adapter in ADAPTERS if adapter.name in ("openai-chat", "anthropic-schema")]
#: For what each adapter has code of its own for.
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=str, indirect=True)
#: The adapters by their names.
BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}
