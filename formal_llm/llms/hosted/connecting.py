"""Making pydantic-ai's models: the address and the key of each provider, and the HTTP client that bounds responses."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from formal_llm.errors import MissingDependency, MissingKey, ProviderError, UnknownProvider

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from formal_llm.llms.hosted.wire import BoundedClient


class Preset(NamedTuple):
    """A provider whose address and key we know.

    Attributes:
        url: the default address; None: that of the SDK, which needs a key.
        grammar: the field of a request that takes a grammar; empty if the provider takes none.
        continues: whether a text can be continued (``/completions``).
    """

    url_variable: str
    key_variable: str
    url: str | None
    grammar: str = ""
    continues: bool = False


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """What holds for models that are made without settings of their own.

    Attributes:
        max_retries: how often a request is repeated after a failure that may pass.
        deadline: the seconds for a question, all tries and waits together.
    """

    max_retries: int = 6
    deadline: float = 600.0


#: What holds in this context.
DEFAULTS: ContextVar[RequestDefaults] = ContextVar("formal_llm_requests", default=RequestDefaults())  # noqa: B039  # immutable


@contextmanager
def set_request_defaults(**given: float | None) -> Iterator[None]:
    """Have settings of :class:`RequestDefaults` hold for all hosted models that are made within the block."""
    kept = {name: value for name, value in given.items() if value is not None}
    token = DEFAULTS.set(replace(DEFAULTS.get(), **kept))  # type: ignore[arg-type]
    try:
        yield
    finally:
        DEFAULTS.reset(token)


#: OpenAI, Anthropic, and servers that one runs oneself. All other providers are those of pydantic-ai.
PRESETS = {
    "openai": Preset("OPENAI_BASE_URL", "OPENAI_API_KEY", None, "lark"),
    "anthropic": Preset("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", None),
    "vllm": Preset("VLLM_BASE_URL", "VLLM_API_KEY", "http://localhost:8000/v1", "structured_outputs", True),
    "ollama": Preset("OLLAMA_HOST", "OLLAMA_API_KEY", "http://localhost:11434"),
    "llamacpp": Preset("LLAMACPP_BASE_URL", "LLAMACPP_API_KEY", "http://localhost:8080/v1", "grammar", True),
    "sglang": Preset("SGLANG_BASE_URL", "SGLANG_API_KEY", "http://localhost:30000/v1", "ebnf", True),
    "lmstudio": Preset("LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY", "http://localhost:1234/v1"),
}
#: Headers of OpenAI's SDK that are for OpenAI alone.
_FOR_OPENAI = ("OpenAI-Organization", "OpenAI-Project")


def make_model(name: str, base_url: str | None, api_key: str | None, client: BoundedClient) -> Model:
    """Return pydantic-ai's model for ``PROVIDER:MODEL``.

    Raises:
        UnknownProvider: there is no such provider.
        MissingKey: the provider needs a key, and there is none.
        MissingDependency: the provider needs a library that is not installed.
        ProviderError: the address is not valid.
    """
    provider, _, model = name.partition(":")
    preset = PRESETS.get(provider)
    if preset is None:
        return _infer_model(name, {"base_url": base_url, "api_key": api_key, "http_client": client})
    key = api_key or read_variable(preset.key_variable)
    if preset.url is None and not key:
        raise MissingKey(name, preset.key_variable)
    url = base_url or read_variable(preset.url_variable) or preset.url
    url = None if url is None else check_address(name, url, preset.url_variable)
    if provider != "openai":
        client.left_out = (*_FOR_OPENAI, *(() if key else ("Authorization",)))
    if provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        assert key is not None
        return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=url, http_client=client))
    return _make_chat_model(provider, model, url, key, client)


def _make_chat_model(provider: str, model: str, url: str | None, key: str | None, client: BoundedClient) -> Model:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    from pydantic_ai.providers.vllm import VLLMProvider

    # The questions say which numbers there are, so the schema of an answer is not repeated in words.
    profile = ModelProfile(supports_json_schema_output=True, native_output_requires_schema_in_instructions=False)
    match provider:
        case "openai":
            return OpenAIChatModel(model, provider=OpenAIProvider(base_url=url, api_key=key, http_client=client))
        case "ollama":
            return OllamaModel(model, provider=OllamaProvider(base_url=url, api_key=key, http_client=client))
        case "vllm":
            own = VLLMProvider(base_url=url, api_key=key, http_client=client)
            return OpenAIChatModel(model, provider=own, profile=profile)
    assert url is not None
    other = OpenAICompatibleProvider(provider, base_url=url, api_key=key, http_client=client)
    return OpenAIChatModel(model, provider=other, profile=profile)


def _infer_model(name: str, given: dict[str, Any]) -> Model:
    """Return the model of one of pydantic-ai's own providers, made with what of ``given`` it takes."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

    def make_provider(provider: str) -> Provider[Any]:
        if provider.startswith("gateway/"):
            return infer_provider(provider)
        kind = infer_provider_class(provider)
        takes = inspect.signature(kind.__init__).parameters
        # Some SDKs have clients of another library.
        fits = "http_client" in takes and "HTTPClient" in str(takes["http_client"].annotation)
        kept = {key: value for key, value in given.items() if value is not None and key in takes}
        return kind(**{key: value for key, value in kept.items() if key != "http_client" or fits})

    try:
        return infer_model(name, make_provider)
    except ImportError as error:
        raise MissingDependency(f"{name}: {error}") from None
    except (UserError, ValueError) as error:
        found, provider = str(error), name.partition(":")[0]
    if found.startswith(("Unknown model", "Unknown provider")):
        from formal_llm.llms.providers import provider_forms

        raise UnknownProvider(name, tuple(provider_forms()))
    variable = next(
        (word.strip("`'\".,") for word in found.split() if word.strip("`'\".,").endswith(("_KEY", "_TOKEN"))), ""
    )
    if variable:
        raise MissingKey(name, variable)
    raise ProviderError(f"{name}: {provider} cannot be used: {found}")


def read_variable(name: str) -> str | None:
    """Return the value of an environment variable; an empty or blank value counts as not set."""
    return os.environ.get(name, "").strip() or None


def plain_address(url: object) -> str:
    """Return an address without user name, password, query and final slash, so that it may be shown and stored."""
    scheme, separator, rest = str(url).partition("?")[0].partition("#")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}".rstrip("/")


def check_address(name: str, url: str, variable: str) -> str:
    """Return an address if it is one of a server; that of Ollama may be a host, as its own client reads it.

    Raises:
        ProviderError: it is none; the message shows an example.
    """
    try:
        parts = urlsplit(url)
        if variable == "OLLAMA_HOST":
            url = _complete_host(url)
            parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and len(url) <= 2_000
        (parts.hostname or "").encode("idna")
    except ValueError:  # also of a name that is no name of a host
        is_valid = False
    if not is_valid or any(not one.isprintable() or one == " " for one in url):
        raise ProviderError(
            f"{name}: {plain_address(url)[:100]!r} is no address of a server; "
            f"give one like http://localhost:8000/v1 as base_url or in {variable}"
        )
    return url


def _complete_host(host: str) -> str:
    """Return the address for a value of ``OLLAMA_HOST``: without a scheme the port is 11434, with one its own."""
    has_scheme = "://" in host
    if not has_scheme and host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    parts = urlsplit(host if has_scheme else f"http://{host}")
    name = parts.hostname or ("" if has_scheme else "127.0.0.1")
    name = "127.0.0.1" if name == "0.0.0.0" else f"[{name}]" if ":" in name else name  # noqa: S104  # nothing is bound
    port = parts.port or (None if has_scheme else 11434)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{path}/v1"
