"""Models on a server of llama.cpp: its own ``llama-server``, or that of ``llama-cpp-python``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from formal_llm.llms.generation import CUT_OFF
from formal_llm.llms.hosted.adapter import token_usage
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.openai_client import CompletionsLLM, Connection
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text_request import Part, TextRequest
from formal_llm.llms.question import Question
from formal_llm.llms.schemas import Schema, portable


class LlamaCppLLM(CompletionsLLM):
    """A model on a llama.cpp server; a grammar (GBNF) restricts it to the option numbers.

    The text of the answer is one of the numbers and nothing else; if several may be chosen, numbers in ascending order,
    separated by commas. Probabilities are computed from those of the tokens; ``llama-cpp-python`` returns them only if
    it was started with ``--logits_all true``, and is asked without them otherwise.

    It continues a text (``continue_text``) with ``/completion``, which reports what ended the text; on a server without
    that endpoint, ``llama-cpp-python``, with ``/completions``, where the text is cut at its stops here.

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
        return self._post_json(client, _at_root(client.base_url, "/completion"), {**body, **asked, **self._extra_body})

    def _reduce_request(self, error: Exception, request: TextRequest) -> TextRequest:
        if request.continues and self._native and getattr(error, "status_code", None) == 404:
            self._native = False
            return request
        return super()._reduce_request(error, request)

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


def _at_root(base_url: object, path: str) -> str:
    """Return the address of a server's path that is not below the version of OpenAI's protocol."""
    return str(base_url).rstrip("/").removesuffix("/v1") + path


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
