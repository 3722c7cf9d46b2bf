"""What adapters are made with: keys and addresses from the environment, clients of the user's."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from formal_llm.errors import ProviderError


def from_environment(variable: str, default: str | None = None) -> str | None:
    """The value of an environment variable; what is empty or blank counts as not set."""
    return os.environ.get(variable, "").strip() or default


def checked_address(name: str, url: str, variable: str) -> str:
    """``url`` if it is the address of a server.

    Raises:
        ProviderError: it is not; the message shows what one looks like.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(character.isspace() for character in url):
        raise ProviderError(
            f"{name}: {plain_address(url)!r} is no address of a server; "
            f"give one like http://localhost:8000/v1 as base_url or in {variable}"
        )
    return url


def plain_address(url: object) -> str:
    """``url`` without user name, password, query and a slash at its end, as it may be shown and stored."""
    shown = str(url).partition("?")[0].partition("#")[0]
    scheme, separator, rest = shown.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}".rstrip("/")


def either_client_or(clients: tuple[object, ...], **settings: object) -> None:
    """Raise ``ValueError`` if a client is given and one of the settings that it has already."""
    names = [name for name, value in settings.items() if value is not None]
    if names and any(client is not None for client in clients):
        raise ValueError(f"a client brings its own {', '.join(names)}; give one or the other")


def given(**values: object) -> dict[str, Any]:
    """The values that are not None, as arguments for a constructor, whatever types it wants."""
    return {key: value for key, value in values.items() if value is not None}


def check_plain(client: object, *classes: type, own: object = None) -> None:
    """Check that a client can be made again from its settings, to wait where it is awaited, or the other way round.

    Raises:
        TypeError: it cannot: its class is none of the SDK's ``classes``, its HTTP client is its own, or it has ``own``.
    """
    http = type(getattr(client, "_client", None)).__name__
    plain = ("SyncHttpxClientWrapper", "AsyncHttpxClientWrapper", "BoundedClient", "BoundedAsyncClient")
    if type(client) not in classes or http not in plain or own:
        raise TypeError(
            f"a {type(client).__name__} with settings of its own has no like; give both client and async_client"
        )
