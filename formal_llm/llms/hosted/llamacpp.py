"""Models on a server of llama.cpp: its own ``llama-server``, or that of ``llama-cpp-python``.

``llamacpp-local:FILE.gguf`` and ``qwen`` run llama.cpp in this process: ``xllamacpp`` carries its server as a library.
It is started here on a free port of the loopback interface with a random key, and asked like any other, so grammars,
probabilities, texts, streams and the cache of prefixes are the same. It ends with this process.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict, Unpack

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms.generation import CUT_OFF
from formal_llm.llms.hosted.adapter import chat_data, token_usage
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.openai_client import CompletionsLLM, Connection
from formal_llm.llms.hosted.scoring import SHORT, at_root, summed, tokens_in
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text_request import Part, TextRequest
from formal_llm.llms.packaged import QWEN
from formal_llm.llms.question import Message, Question
from formal_llm.llms.schemas import Schema, portable


class LlamaCppLLM(CompletionsLLM):
    """A model on a llama.cpp server; a grammar (GBNF) restricts it to the option numbers.

    The text of the answer is one of the numbers and nothing else; if several may be chosen, numbers in ascending order,
    separated by commas. Probabilities are computed from those of the tokens; ``llama-cpp-python`` returns them only if
    it was started with ``--logits_all true``, and is asked without them otherwise.

    It continues a text (``continue_text``) with ``/completion``, which reports what ended the text; on a server without
    that endpoint, ``llama-cpp-python``, with ``/completions``, where the text is cut at its stops here. It computes the
    probabilities of given texts (``log_probabilities``) if the server supports token grammars (since the end of 2025).

    Args:
        model: the name of the model; a server with a single model accepts any.
        temperature: the sampling temperature; None: the server's default.
        max_tokens: the maximum number of tokens that the model writes and thinks; None sends none.
        logprobs: whether to request token probabilities; None: until the server refuses them.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        connection: the connection to the server, see ``Connection``; by default at ``LLAMACPP_BASE_URL``, or
            ``http://localhost:8080/v1``, with the key ``LLAMACPP_API_KEY`` if it is set.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "llamacpp"
    key_variable = "LLAMACPP_API_KEY"
    url_variable = "LLAMACPP_BASE_URL"
    default_url = "http://localhost:8080/v1"
    needs = "the server must be one of llama.cpp, which knows grammars"
    choice_limit = "max_tokens"  # llama-cpp-python only supports the older name

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        logprobs: bool | None = None,
        extra_body: Mapping[str, object] | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        self._native = True
        self._ends_by_itself = False
        super().__init__(
            model,
            temperature=temperature,
            max_completion_tokens=max_tokens,
            logprobs=logprobs,
            extra_body=extra_body,
            **connection,
        )

    def _restrict_choice(self, question: Question) -> dict[str, Any]:
        body: dict[str, Any] = {"grammar": grammar(len(question.options), several=question.several)}
        if self.asks_logprobs and not question.several:
            # This is llama.cpp's own name; llama-cpp-python ignores names that it does not know.
            body["n_probs"] = MOST_ALTERNATIVES
        return {"extra_body": body}

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        # Both servers accept a schema in this form; bounds of texts would become grammars that llama.cpp refuses.
        return {"response_format": {"type": "json_object", "schema": portable(schema, lists=True)}}

    def _request_completion(self, client: Any, request: TextRequest) -> Any:
        if not self._native:
            return super()._request_completion(client, replace(request, stop=()))
        body = {"prompt": request.messages[-1].content, "n_predict": request.max_tokens, "cache_prompt": True}
        asked = given(temperature=request.temperature, stop=list(request.stop) or None, stream=request.streams or None)
        return self._post_json(client, at_root(client.base_url, "/completion"), {**body, **asked, **self._extra_body})

    def _reduce_request(self, error: Exception, request: TextRequest) -> TextRequest:
        if request.continues and self._native and getattr(error, "status_code", None) == 404:
            self._native = False
            return request
        return super()._reduce_request(error, request)

    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        response = self._post_json(
            self.client, at_root(self.client.base_url, "/apply-template"), {"messages": chat_data(messages)}
        )
        return self._tokenize_text(response["prompt"], add_special=True, parse_special=True)

    def _answered_tokens(self, answer: str) -> list[int]:
        def written(messages: Sequence[Message]) -> str:
            body = {"messages": chat_data(messages)}
            return str(self._post_json(self.client, at_root(self.client.base_url, "/apply-template"), body)["prompt"])

        # Another message follows the answer, since a server would continue an answer that comes last.
        before, whole = written(SHORT), written([*SHORT, Message("assistant", answer), *SHORT])
        start = before + answer
        if not whole.startswith(start) or whole == start:
            raise KeyError("the chat template does not write an answer where the model would")
        return self._tokenize_text(whole[len(start) :], add_special=False, parse_special=True)

    def _text_tokens(self, text: str) -> list[int]:
        return self._tokenize_text(text, add_special=False)

    def _tokenize_text(self, text: str, **how: bool) -> list[int]:
        return tokens_in(
            self._post_json(self.client, at_root(self.client.base_url, "/tokenize"), {"content": text, **how})
        )

    def _score_text(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        # The server reports no probabilities of the prompt. So it writes the text, restricted by a grammar,
        # and reports how probable each token was before the grammar was applied.
        asked: dict[str, Any] = {
            "prompt": [*before],
            "n_predict": len(tokens),
            "n_probs": 1,
            "temperature": 0.0,
            "cache_prompt": True,
        }
        inside = tokens
        if self._ends_by_itself and tokens[-1] == self._end_token:
            # A token that ends all texts of the model follows a grammar's texts by itself and is no part of a grammar.
            # The bias chooses it among several such tokens; the reported probabilities are those without it.
            inside, asked["logit_bias"] = tokens[:-1], [[tokens[-1], 100.0]]
        rule = "root ::= " + (" ".join(f"<[{token}]>" for token in inside) or '""')
        try:
            body = self._post_json(
                self.client, at_root(self.client.base_url, "/completion"), {**asked, "grammar": rule}
            )
        except Exception as error:
            if self._ends_by_itself or tokens[-1] != self._end_token or "grammar stack" not in str(error):
                raise
            self._ends_by_itself = True
            return self._score_text(before, tokens)
        probabilities = body["completion_probabilities"]
        if [one["id"] for one in probabilities] != [*tokens]:
            raise TypeError("the server wrote other tokens than it was held to")
        return summed([one["logprob"] for one in probabilities], len(tokens))

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        if "choices" in response:
            return super()._read_completion(response, request)
        # What ended the text: new servers name the kind, older ones have a flag for each kind.
        kind = response.get("stop_type") or next(
            (kind for kind in ("word", "eos", "limit") if response.get(f"stopped_{kind}")), None
        )
        word = response.get("stopping_word")
        ended = {"eos": "", "word": word if word in request.stop else ""}.get(str(kind))
        last = bool(kind and kind != "none")
        usage = token_usage(response.get("tokens_evaluated"), response.get("tokens_predicted")) if last else None
        return Part(response["content"], ended, usage, last, CUT_OFF if last and ended is None else "")


def grammar(count: int, *, several: bool = False) -> str:
    """Return the grammar of an answer, in llama.cpp's notation.

    Args:
        count: the number of options.
        several: whether any non-empty ascending list of numbers is an answer, or exactly one number.
    """
    if not several:
        return "root ::= " + " | ".join(f'"{number}"' for number in range(1, count + 1))
    # from-i is a list that begins with i or later; so there is one rule for each option, not for each pair of options.
    rules = [
        f'from-{number} ::= "{number}" ("," " "? from-{number + 1})? | from-{number + 1}' for number in range(1, count)
    ]
    return "\n".join(["root ::= from-1", *rules, f'from-{count} ::= "{count}"'])


_HOW = "pip install 'formal-llm[llamacpp-local]'"
#: The tokens that a prompt and its answer may have together.
CONTEXT = 8192
#: Running servers by what they were started with.
_SERVERS: dict[tuple[Path, int, int, int], tuple[Any, str]] = {}
_LOCK = threading.Lock()


class LocalLlamaCppLLM(LlamaCppLLM):
    """A model in a GGUF file, run by llama.cpp in this process.

    Args:
        name: the name of the model; by default that of the file.
        context: the maximum number of tokens of a prompt with its answer.
        threads: the number of threads; None: one for each core.
        temperature: the sampling temperature; 0 takes the most probable token.

    Raises:
        MissingDependency: ``xllamacpp`` is not installed.
        ResourceNotFound, ModelError: there is no such file, or llama.cpp cannot load it.
    """

    provider = "llamacpp-local"

    def __init__(
        self,
        file: str | Path,
        *,
        name: str | None = None,
        context: int = CONTEXT,
        threads: int | None = None,
        temperature: float = 0.0,
    ) -> None:
        path = Path(file).expanduser().resolve()
        address, key = start_server(path, context, threads or os.cpu_count() or 1)
        # A question waits for those before it, since there is one slot: no bound on the time of a single one.
        super().__init__(
            path.name, temperature=temperature, base_url=f"{address}/v1", api_key=key, timeout=3600, max_retries=0
        )
        if name is not None:
            self.name = name
        # The port changes each time, the file is what answers.
        del self.settings["address"]
        self.settings |= {"bytes": path.stat().st_size, "context": context}

    @classmethod
    def from_text(cls, text: str) -> LocalLlamaCppLLM:
        """Create the model of ``FILE`` or ``FILE?context=4096&threads=2``.

        Raises:
            ModelError: a setting is unknown, or its value no number above 0.
        """
        file, _, rest = text.partition("?")
        return cls(file, **read_settings(rest))

    @classmethod
    def qwen(cls, text: str | None) -> LocalLlamaCppLLM:
        """Create the model ``qwen``, with settings or none.

        Raises:
            MissingDependency: its packages are not installed.
        """
        return cls(QWEN.find(), name="qwen", **read_settings((text or "").removeprefix("?")))


class LocalSettings(TypedDict, total=False):
    """The settings behind the name of a file."""

    context: int
    threads: int


def read_settings(text: str) -> LocalSettings:
    """Read ``context=4096&threads=2``."""
    found: LocalSettings = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        if name not in LocalSettings.__annotations__ or not value.isdecimal() or int(value) < 1:
            raise ModelError(f"{part!r} is no setting of llama.cpp here; write context=NUMBER or threads=NUMBER")
        found[name] = int(value)  # type: ignore[literal-required]  # checked above
    return found


def start_server(file: Path, context: int, threads: int) -> tuple[str, str]:
    """Start llama.cpp's server for a file in this process, or return the one that runs already.

    Returns:
        its address and its key.
    """
    if find_spec("xllamacpp") is None:
        raise MissingDependency(f"llama.cpp in this process needs xllamacpp: {_HOW}")
    if not file.is_file():
        raise ResourceNotFound("model file", str(file), [])
    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ModelError(f"the model {file} is no GGUF file")
    import xllamacpp

    # A forked process has none of the threads of its parent's server.
    known = file, context, threads, os.getpid()
    with _LOCK:
        if known not in _SERVERS:
            key = secrets.token_urlsafe(16)
            how = xllamacpp.CommonParams()
            how.model.path, how.n_ctx, how.n_parallel = str(file), context, 1
            how.cpuparams.n_threads = how.cpuparams_batch.n_threads = threads
            how.hostnames, how.port, how.api_keys = ["127.0.0.1"], 0, [key]
            how.ui, how.verbosity = False, 0
            try:
                server = xllamacpp.Server(how)
            except Exception as error:  # a runtime error of its own
                raise ModelError(f"llama.cpp cannot load {file}: {str(error).strip()}") from error
            _SERVERS[known] = server, key
        server, key = _SERVERS[known]
    return str(server.listening_address), key
