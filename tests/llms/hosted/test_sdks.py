"""What the adapters use of the SDKs is there, and the versions are those that pyproject.toml allows.

``tests/end_to_end/use_sdk_versions.py`` runs all tests of hosted models at the lowest and highest versions.
"""

from __future__ import annotations

from importlib import metadata
from operator import attrgetter

import anthropic
import httpcore2
import httpx2
import openai
import pytest

from tests.end_to_end.use_sdk_versions import choose_versions, read_requirements

ANTHROPIC = anthropic.Anthropic(api_key="none-is-needed", base_url="http://127.0.0.1:9")
OPENAI = openai.OpenAI(api_key="none-is-needed", base_url="http://127.0.0.1:9")
#: The names that the adapters use, public ones and, below, those that have no public name.
USED = [
    (openai, "OpenAI AsyncOpenAI OpenAIError Stream AsyncStream omit"),
    (openai, "DefaultHttpxClient DefaultAsyncHttpxClient DefaultAioHttpClient"),
    (anthropic, "Anthropic AsyncAnthropic AnthropicError"),
    (anthropic, "DefaultHttpxClient DefaultAsyncHttpxClient DefaultAioHttpClient"),
    (OPENAI, "post with_options default_headers default_query base_url timeout max_retries close"),
    (OPENAI, "api_key admin_api_key organization project workload_identity"),
    (OPENAI, "decisions.create files.create files.content batches.create batches.retrieve batches.cancel"),
    (ANTHROPIC, "get with_options default_headers default_query base_url timeout max_retries close"),
    (ANTHROPIC, "api_key auth_token credentials messages.create"),
    (ANTHROPIC, "messages.batches.create messages.batches.retrieve messages.batches.cancel"),
    (httpx2, "Client AsyncClient BaseTransport SyncByteStream AsyncByteStream create_ssl_context"),
    (httpx2, "RequestError TimeoutException NetworkError InvalidURL URL Request Response Headers"),
    (httpcore2, "NetworkBackend NetworkStream ConnectError ConnectTimeout ReadTimeout WriteTimeout"),
    (OPENAI, "_client"), (ANTHROPIC, "_client _middleware"), (OPENAI, "_client._transport _client._mounts"),
    (OPENAI, "_client._transport._pool._network_backend"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "names"), USED, ids=[names for _, names in USED])
def test_what_is_used_exists(where: object, names: str) -> None:
    for name in names.split():
        try:
            attrgetter(name)(where)
        except AttributeError as error:
            pytest.fail(f"{name} of {where} is gone ({error}); look for its uses in formal_llm/llms/hosted")


def test_installed_versions_are_allowed_ones() -> None:
    for name, one in read_requirements().items():
        assert metadata.version(name) in one.specifier, f"{name} {metadata.version(name)} is not {one}"


def test_all_have_lower_and_upper_bounds() -> None:
    found = read_requirements()
    assert {one.split("==")[0] for one in choose_versions("lowest")} == set(found)
    for name, one in found.items():
        assert name == "aiohttp" or any(s.operator == "<" for s in one.specifier), one
