"""What adapters are made with, and what they use of the SDKs."""

from __future__ import annotations

from importlib import metadata
from operator import attrgetter

import anthropic
import httpcore2
import httpx2
import openai
import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.settings import (
    checked_address,
)
from tests.end_to_end.use_sdk_versions import choose_versions, read_requirements


@pytest.mark.parametrize(
    "url",
    ["ftp://x/y", "http://", "http://a b", "http://h:port", "http://[::1", "h:80", "", "http://exämple..de/",
     "http://host/\x00", "http://ho\x7fst/", f"http://{'a' * 64}.de/", f"http://host/{'a' * 2_000}"],
)  # fmt: skip
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(ProviderError, match=r"x: .* is no address of a server.*URL_OF_X"):
        checked_address("x", url, "URL_OF_X")


def test_the_secrets_of_an_address_are_not_told() -> None:
    with pytest.raises(ProviderError, match=r"'ftp://host/v1' is no address") as caught:
        checked_address("x", "ftp://me:secret@host/v1?key=secret", "URL_OF_X")
    assert "secret" not in str(caught.value)


class Client:
    """As the clients of the SDKs are made: with an HTTP client of their own making inside."""

    def __init__(self, http: str = "SyncHttpxClientWrapper") -> None:
        self._client = type(http, (), {})()


class Special(Client):
    """A class of the user's."""


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
