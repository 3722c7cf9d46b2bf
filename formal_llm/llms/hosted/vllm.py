"""Models on a vLLM server, and LoRA adapters that it loads while it runs.

vLLM loads an adapter from a folder that it can read (``POST /v1/load_lora_adapter``), if it was started as in
:data:`START`. From then on the adapter's name is the name of a model. Its cached keys and values belong to that name:
an adapter that replaced another one of the same name would use those of the old one. So each name is used only once.

There are two ways to request the probabilities of tokens. Servers since 2026-07 report those of given tokens
(``logprob_token_ids``, up to 128 of them), and read the shared part of texts once. Older ones report those of the
tokens of a given text (``echo``), for which they read the whole text again. The first request determines which way the
server supports. Both return the model's own probabilities, before any temperature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.adapter import chat_data, provider_error, shown_words
from formal_llm.llms.hosted.choice_schema import choice_schema
from formal_llm.llms.hosted.openai_client import CompletionsLLM
from formal_llm.llms.hosted.scoring import SHORT, at_root, behind, summed, tokens_in
from formal_llm.llms.hosted.settings import plain_address
from formal_llm.llms.question import Message, Question
from formal_llm.llms.schemas import Schema, portable


class VLLM(CompletionsLLM):
    """A model on a vLLM server (0.11 or newer); structured output restricts it to the option numbers.

    The text of the answer is one of the numbers and nothing else; if several may be chosen, a JSON list of them.
    Probabilities are computed from those of the tokens. It also continues texts (``continue_text``) and computes
    the probabilities of given texts (``log_probabilities``).

    Args:
        model: the name of the model on the server.
        temperature: the sampling temperature; None: the server's default.
        max_completion_tokens: the maximum number of tokens that the model writes and thinks; None sends none.
        logprobs: whether to request token probabilities; None: until the server refuses them.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        connection: the connection to the server, see ``Connection``; by default at ``VLLM_BASE_URL``, or
            ``http://localhost:8000/v1``, with the key ``VLLM_API_KEY`` if it is set.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "vllm"
    key_variable = "VLLM_API_KEY"
    url_variable = "VLLM_BASE_URL"
    default_url = "http://localhost:8000/v1"
    needs = "the server must know structured_outputs (vLLM 0.11 or newer)"

    def _restrict_choice(self, question: Question) -> dict[str, Any]:
        if question.several:
            output: dict[str, Any] = {"json": choice_schema(question, bounded=True)}
        else:
            output = {"choice": [str(option.number) for option in question.options]}
        return {"extra_body": {"structured_outputs": output}}

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        return {"extra_body": {"structured_outputs": {"json": portable(schema, lists=True)}}}

    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        return self._request_tokens(messages=chat_data(messages), add_generation_prompt=True)

    def _answered_tokens(self, answer: str) -> list[int]:
        chat = chat_data([*SHORT, Message("assistant", answer)])
        whole = self._request_tokens(messages=chat, add_generation_prompt=False)
        return behind(whole, self._chat_tokens(SHORT), self._text_tokens(answer))

    def _text_tokens(self, text: str) -> list[int]:
        return self._request_tokens(prompt=text, add_special_tokens=False)

    def _request_tokens(self, **what: object) -> list[int]:
        return tokens_in(
            self._post_json(self.client, at_root(self.client.base_url, "/tokenize"), {"model": self.model, **what})
        )

    def _score_text(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        (found,) = self._score_all(before, [tokens])
        return found

    def _score_all(self, before: Sequence[int], texts: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
        # In one request, since the server reads the shared part of the prompts once. It reports the probabilities of
        # the prompts; the one token that it has to write is left out.
        asked = {"max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
        prompts = [[*before, *tokens] for tokens in texts]
        prompt = prompts[0] if len(prompts) == 1 else prompts
        response = self._post_json(self.client, "/completions", {"model": self.model, "prompt": prompt, **asked})
        choices = sorted(response["choices"], key=lambda choice: choice.get("index", 0))
        if len(choices) != len(texts):
            raise TypeError(f"the server reported {len(choices)} of {len(texts)} texts")
        token_logs = [choice["logprobs"]["token_logprobs"][len(before) :] for choice in choices]
        return [summed(logs[: len(tokens)], len(tokens)) for logs, tokens in zip(token_logs, texts, strict=True)]


#: A text, as its tokens.
Text: TypeAlias = tuple[int, ...]
#: The requested probabilities: for each text, the next tokens.
Wanted: TypeAlias = Mapping[Text, Collection[int]]

#: The command that starts a server which accepts adapters.
START = (
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL --enable-lora --max-lora-rank RANK --max-loras 2 "
    "--api-server-count 1"
)
#: The maximum number of tokens whose probabilities vLLM reports by their ids.
_MOST_NAMED = 128
#: The number of concurrent requests, and the number of tokens of texts in each; an echo returns each token.
_AT_ONCE = 4
_TOKENS, _ECHOED = 65_536, 16_384
#: The logarithm that vLLM writes for a probability of 0.
_NONE = -9_999.0


class LoRAServer(VLLM):
    """A vLLM server with its adapters.

    Args:
        url: its address, such as ``http://localhost:8000``; None: that of ``VLLM_BASE_URL``, or local port 8000.
        timeout, max_retries: see ``Connection``; the key is ``VLLM_API_KEY`` if it is set.

    Attributes:
        names_tokens: whether it reports probabilities of tokens by their ids; None before the first request.

    Raises:
        ProviderError: the address is not valid.
    """

    def __init__(self, url: str | None = None, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        super().__init__("", base_url=url or None, timeout=timeout, max_retries=max_retries)
        self.name = f"vLLM server at {plain_address(self.client.base_url)}"
        self.names_tokens: bool | None = None

    def _build_address(self, url: str) -> str:
        return url if url.rstrip("/").endswith("/v1") else url.rstrip("/") + "/v1"

    # -- adapters ---------------------------------------------------------------------------------------------------

    def models(self) -> dict[str, str]:
        """Return the models and adapters of the server, each with the name of its base model; empty for models.

        Raises:
            ProviderError: the server cannot be reached, or its answer is not valid.
        """
        with self._scrub_errors(), self._run_within_bounds():
            try:
                response = self.client.get("/models", cast_to=object, options={"headers": self.headers})
                return {str(one["id"]): str(one.get("parent") or "") for one in response["data"]}
            except Exception as error:
                raise provider_error(self, error) from error

    def check(self) -> None:
        """Check that the server accepts adapters while it runs.

        Raises:
            ProviderError: it does not, or cannot be reached; the message explains how to start it.
        """
        self.models()
        self.unload("formal-llm-is-anybody-there")

    def load(self, name: str, folder: str | Path, rank: int | None = None) -> None:
        """Load an adapter, which is a model of the server from now on.

        Args:
            name: the name of the adapter, which was never used on this server.
            folder: the folder of the adapter in peft's format, as a path on the server.
            rank: the rank of the adapter, for the message if it is too large.

        Raises:
            ProviderError: the server refuses; the message explains what to do.
        """
        with self._scrub_errors(), self._run_within_bounds():
            try:
                self._post_json(self.client, "/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})
            except Exception as error:
                message = shown_words(error, self.client)
                if "already been loaded" in message:  # by a request whose answer was lost, since each name is used once
                    return
                raise self._describe_refusal(error, message, folder, rank) from error

    def unload(self, name: str) -> None:
        """Unload an adapter; an unknown one counts as unloaded.

        Raises:
            ProviderError: the server cannot be reached, or accepts no adapters.
        """
        with self._scrub_errors(), self._run_within_bounds():
            try:
                self._post_json(self.client, "/unload_lora_adapter", {"lora_name": name})
            except Exception as error:
                message = shown_words(error, self.client)
                if getattr(error, "status_code", None) in (400, 404) and "adapter" in message.casefold():
                    return
                raise self._describe_refusal(error, message) from error

    def _describe_refusal(
        self, error: Exception, message: str, folder: str | Path | None = None, rank: int | None = None
    ) -> ProviderError:
        """Create the error for a failed request about adapters, with what to do."""
        status, words = getattr(error, "status_code", None), message.casefold()
        if status == 404 and "adapter" not in words:
            what = f"the server takes no adapters while it runs; start it with {START}"
        elif "not enabled" in words or "enable_lora" in words or "enable-lora" in words:
            what = f"the server was started without LoRA; start it with {START}"
        elif "max_lora_rank" in words or "max lora rank" in words:
            what = f"the adapter's rank is too large for the server; start it with --max-lora-rank {rank or 'RANK'}"
        elif "no adapter found" in words or "no such file" in words:
            what = (
                f"the server does not see the folder {folder}: it reads adapters from its own disk; give a folder that "
                "both see under the same path (rollout_folder)"
            )
        elif (isinstance(status, int) and status in (400, 422)) or (
            isinstance(status, int) and status >= 500 and message
        ):
            what = "the server refuses the adapter"
        else:
            return provider_error(self, error)
        return ProviderError(f"{self.name}: {what} (status {status}: {message})", error)

    # -- probabilities ----------------------------------------------------------------------------------------------

    def next_tokens(self, model: str, wanted: Wanted) -> dict[Text, dict[int, float]]:
        """Return the natural logarithms of the probabilities of tokens after texts.

        Args:
            model: the name of the model or adapter.
            wanted: for each text, the next tokens.

        Raises:
            ProviderError: there was no answer, or one without them; or there is no such model (cause: status 404).
        """
        found: dict[Text, dict[int, float]] = {text: {} for text in wanted}
        if self.names_tokens is not False:
            self._ask_by_name(model, wanted, found)
        if self.names_tokens is False:
            self._ask_by_echo(model, wanted, found)
        for text, logs in found.items():
            if len(logs) < len(set(wanted[text])) or not all(map(_is_log, logs.values())):
                raise ProviderError(
                    f"{self.name}: it does not say how probable each answer is (it gave {list(logs.values())[:4]}); "
                    "start it with --logprobs-mode raw_logprobs"
                )
        return found

    def _ask_by_name(self, model: str, wanted: Wanted, found: dict[Text, dict[int, float]]) -> None:
        """Ask for the tokens by their numbers; ends early where the first answer shows that the server cannot."""
        # The texts that others continue come first: then the server has read them when it comes to the others.
        shortest = {text for text in wanted if not any(text[:end] in wanted for end in range(1, len(text)))}
        for part in (shortest, wanted.keys() - shortest):
            requests = list(_group_wanted({text: wanted[text] for text in sorted(part)}))
            if self.names_tokens is None and requests:
                self.names_tokens = self._named_ones(model, requests[0], found)
                del requests[0]
            if self.names_tokens is False:
                return
            for is_named in self._ask_together(lambda one: self._named_ones(model, one, found), requests):
                if not is_named:
                    raise ProviderError(f"{self.name}: it reported other tokens than it was asked for")

    def _ask_by_echo(self, model: str, wanted: Wanted, found: dict[Text, dict[int, float]]) -> None:
        """Ask for the probabilities of whole texts, in which the tokens stand."""
        requests = [dict.fromkeys(rows, ()) for rows in _split_texts(_list_longest(wanted), _ECHOED)]
        for rows in self._ask_together(lambda one: self._read_echoes(model, list(one)), requests):
            for row, logs in rows.items():
                for end in range(1, len(row)):
                    if row[end] in wanted.get(row[:end], ()):
                        found[row[:end]][row[end]] = logs[end]

    def _ask_together(self, ask: Any, requests: Sequence[Wanted]) -> Iterator[Any]:
        """Yield the answers to some requests, a few of which are made concurrently."""
        if len(requests) < 2:
            yield from map(ask, requests)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(ask, requests)

    def _named_ones(self, model: str, wanted: Wanted, into: dict[Text, dict[int, float]]) -> bool:
        """Request the probabilities of tokens by their ids; return whether the server supports that."""
        numbers = sorted({token for tokens in wanted.values() for token in tokens})
        more = {"logprob_token_ids": numbers, "return_tokens_as_token_ids": True}
        try:
            listed = self._request_completions(model, list(wanted), more, "top_logprobs")
        except ProviderError as error:
            if "logprob_token_ids" in str(error):
                return False
            raise
        for text, (top, *_) in zip(wanted, listed, strict=True):
            names = {f"token_id:{token}": token for token in wanted[text]}
            if not isinstance(top, dict) or not names.keys() <= top.keys():
                return False  # an older server, which ignores unknown fields
            into[text] = {token: top[name] for name, token in names.items()}
        return True

    def _read_echoes(self, model: str, rows: list[Text]) -> dict[Text, list[float]]:
        """Return for each text the logarithms of its tokens, each given those before it; None for the first one."""
        token_logs = self._request_completions(model, rows, {"echo": True}, "token_logprobs")
        for row, logs in zip(rows, token_logs, strict=True):
            if len(logs) < len(row):
                raise ProviderError(f"{self.name}: it reported {len(logs)} of {len(row)} tokens")
        return dict(zip(rows, token_logs, strict=True))

    def _request_completions(
        self, model: str, texts: Sequence[Text], more: Mapping[str, object], field: str
    ) -> list[list[Any]]:
        """Return a field of the probabilities that the server reports with each text: a non-empty list."""
        body = {"model": model, "prompt": [list(text) for text in texts], "max_tokens": 1, "temperature": 1.0}
        with self._scrub_errors(), self._run_within_bounds():
            try:
                response = self._post_json(self.client, "/completions", {**body, "logprobs": 1, **more})
                choices = sorted(response["choices"], key=lambda choice: choice["index"])
                if len(choices) != len(texts):
                    raise TypeError(f"{len(choices)} answers to {len(texts)} texts")
                fields = [choice["logprobs"][field] for choice in choices]
                if not all(isinstance(listed, list) and listed for listed in fields):
                    raise TypeError(f"{field} is a list")
                return fields
            except Exception as error:
                raise provider_error(self, error) from error


def _is_log(value: object) -> bool:
    """Return whether a value is the logarithm of a probability above 0, up to rounding."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and _NONE < value <= 0.01


def _group_wanted(wanted: Wanted) -> Iterator[Wanted]:
    """Split into requests whose texts share a list of tokens; texts with similar tokens come together."""
    ordered = sorted(wanted, key=lambda text: sorted(wanted[text]))
    part: dict[Text, Collection[int]] = {}
    numbers: set[int] = set()
    size = 0
    for text in ordered:
        more = numbers | set(wanted[text])
        if part and (len(more) > _MOST_NAMED or size + len(text) > _TOKENS):
            yield part
            part, more, size = {}, set(wanted[text]), 0
        part[text], numbers, size = wanted[text], more, size + len(text)
    if part:
        yield part


def _list_longest(wanted: Wanted) -> list[Text]:
    """Return the longest texts, which contain all requested tokens."""
    rows = sorted((*text, token) for text, tokens in wanted.items() for token in tokens)
    # In this order a text that begins with a row comes directly after it.
    return [row for row, after in zip(rows, [*rows[1:], ()], strict=True) if after[: len(row)] != row]


def _split_texts(texts: Iterable[Text], most: int) -> Iterator[list[Text]]:
    """Split texts into parts of at most ``most`` tokens; a single text may have more."""
    part: list[Text] = []
    size = 0
    for text in texts:
        if part and size + len(text) > most:
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part
