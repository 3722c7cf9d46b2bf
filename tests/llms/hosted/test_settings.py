"""What adapters are made with."""

from __future__ import annotations

import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.settings import (
    check_plain,
    checked_address,
    either_client_or,
    from_environment,
    given,
    list_own_headers,
    plain_address,
)


def test_addresses() -> None:
    assert checked_address("x", "http://[::1]:80/v1", "X") == "http://[::1]:80/v1"
    assert plain_address("https://me:secret@host:1/v1/?key=1#x") == "https://host:1/v1"
    assert plain_address("http://host/") == "http://host"


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


@pytest.mark.parametrize(("value", "found"), [(None, "else"), ("", "else"), ("  ", "else"), (" a ", "a")])
def test_what_is_blank_is_not_set(value: str | None, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OF_X", raising=False)
    if value is not None:
        monkeypatch.setenv("OF_X", value)
    assert from_environment("OF_X", "else") == found


def test_a_client_or_its_settings() -> None:
    either_client_or((None, None), timeout=3, base_url=None)
    either_client_or((object(), None), timeout=None)
    with pytest.raises(ValueError, match="brings its own timeout, api_key"):
        either_client_or((None, object()), timeout=0, base_url=None, api_key="x")


def test_what_is_not_none_is_given() -> None:
    assert given(a=0, b=None, c="", d=False) == {"a": 0, "c": "", "d": False}


class Client:
    """As the clients of the SDKs are made: with an HTTP client of their own making inside."""

    def __init__(self, http: str = "SyncHttpxClientWrapper") -> None:
        self._client = type(http, (), {})()


class Special(Client):
    """A class of the user's."""


def test_which_clients_can_be_made_again() -> None:
    check_plain(Client(), Client)
    check_plain(Client("AsyncHttpxClientWrapper"), int, Client, own=[])
    for client, own in ((Special(), None), (Client("Client"), None), (Client(), ["middleware"]), (object(), None)):
        with pytest.raises(TypeError, match="give both client and async_client"):
            check_plain(client, Client, own=own)


def test_headers_of_the_user() -> None:
    usual = {"Accept": "json", "User-Agent": "sdk", "X-Stainless-Async": "async:asyncio"}
    headers = {"Accept": "json", "User-Agent": "mine", "X-Stainless-Async": "false", "X-Team": "7"}
    assert list_own_headers(headers, usual) == {"User-Agent": "mine", "X-Team": "7"}
