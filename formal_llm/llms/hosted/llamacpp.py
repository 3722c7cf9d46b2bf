"""Models on a server of llama.cpp: its own ``llama-server``, or the one of ``llama-cpp-python``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from formal_llm.llms.hosted.adapter import chat_data, token_usage
from formal_llm.llms.hosted.continuation import CompletionsLLM
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.openai_client import Connection
from formal_llm.llms.hosted.scoring import SHORT, at_root, summed, tokens_in
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text_request import Part, TextRequest
from formal_llm.llms.question import Message, Question
from formal_llm.llms.schemas import Schema, portable


class LlamaCppLLM(CompletionsLLM):
    """A model on a llama.cpp server, held to the option numbers by a grammar (GBNF).

    The text of the answer is one of the numbers and nothing else; where several may be chosen, numbers in ascending
    order, separated by commas. Probabilities come from those of the tokens; ``llama-cpp-python`` gives them only when
    it was started with ``--logits_all true``, and is asked without them otherwise.

    It continues a text (``continue_text``) by ``/completion``, which reports what ended a text; on a server without
    that, ``llama-cpp-python``, by ``/completions``, where stops are cut off here. It determines how probable given
    texts are (``log_probabilities``) where the server knows grammars of tokens (since the end of 2025).

    Args:
        model: the name of the model; a server with a single model takes any.
        temperature: the sampling temperature; None: the server's default.
        max_tokens: the limit on what the model writes and thinks; None sends none.
        logprobs: whether token probabilities are asked for; None: until the server refuses them.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        connection: how the server is reached, see ``Connection``; by default at ``LLAMACPP_BASE_URL``, or
            ``http://localhost:8080/v1``, with the key ``LLAMACPP_API_KEY`` where there is one.

    Raises:
        ProviderError: the address is none.
    """

    provider = "llamacpp"
    key_variable = "LLAMACPP_API_KEY"
    url_variable = "LLAMACPP_BASE_URL"
    default_url = "http://localhost:8080/v1"
    needs = "the server must be one of llama.cpp, which knows grammars"
    choice_limit = "max_tokens"  # the server of llama-cpp-python knows the limit by its older name alone

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

    def _guarantee(self, question: Question) -> dict[str, Any]:
        held: dict[str, Any] = {"grammar": grammar(len(question.options), several=question.several)}
        if self.asks_logprobs and not question.several:
            # llama.cpp's own name for what is asked for; llama-cpp-python passes over names it does not know.
            held["n_probs"] = MOST_ALTERNATIVES
        return {"extra_body": held}

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        # Both servers know a schema by this name; bounds of texts would become grammars that llama.cpp refuses.
        return {"response_format": {"type": "json_object", "schema": portable(schema, lists=True)}}

    def _complete(self, client: Any, request: TextRequest) -> Any:
        if not self._native:
            return super()._complete(client, replace(request, stop=()))
        body = {"prompt": request.messages[-1].content, "n_predict": request.max_tokens, "cache_prompt": True}
        asked = given(temperature=request.temperature, stop=list(request.stop) or None, stream=request.streams or None)
        return self._post(client, at_root(client.base_url, "/completion"), {**body, **asked, **self._extra_body})

    def _less(self, error: Exception, request: TextRequest) -> TextRequest:
        if request.continues and self._native and getattr(error, "status_code", None) == 404:
            self._native = False
            return request
        return super()._less(error, request)

    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        made = self._post(
            self.client, at_root(self.client.base_url, "/apply-template"), {"messages": chat_data(messages)}
        )
        return self._tokens(made["prompt"], add_special=True, parse_special=True)

    def _answered_tokens(self, answer: str) -> list[int]:
        def written(messages: Sequence[Message]) -> str:
            body = {"messages": chat_data(messages)}
            return str(self._post(self.client, at_root(self.client.base_url, "/apply-template"), body)["prompt"])

        # With a message behind it: a server continues an answer that stands last.
        before, whole = written(SHORT), written([*SHORT, Message("assistant", answer), *SHORT])
        start = before + answer
        if not whole.startswith(start) or whole == start:
            raise KeyError("the chat template does not write an answer where the model would")
        return self._tokens(whole[len(start) :], add_special=False, parse_special=True)

    def _text_tokens(self, text: str) -> list[int]:
        return self._tokens(text, add_special=False)

    def _tokens(self, text: str, **how: bool) -> list[int]:
        return tokens_in(self._post(self.client, at_root(self.client.base_url, "/tokenize"), {"content": text, **how}))

    def _score(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        # The server reports nothing about what it reads. So it writes the text, held to its tokens by a grammar, and
        # reports how probable each was before the grammar came.
        held = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        asked = {"prompt": [*before], "n_predict": len(tokens), "n_probs": 1, "temperature": 0.0, "cache_prompt": True}
        made = self._post(self.client, at_root(self.client.base_url, "/completion"), {**asked, "grammar": held})
        told = made["completion_probabilities"]
        if [one["id"] for one in told] != [*tokens]:
            raise TypeError("the server wrote other tokens than it was held to")
        return summed([one["logprob"] for one in told], len(tokens))

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        if "choices" in response:
            return super()._read_completion(response, request)
        # What ended it: new servers name the kind, older ones have a truth value for each.
        kind = response.get("stop_type") or next(
            (kind for kind in ("word", "eos", "limit") if response.get(f"stopped_{kind}")), None
        )
        word = response.get("stopping_word")
        ended = {"eos": "", "word": word if word in request.stop else ""}.get(str(kind))
        last = bool(kind and kind != "none")
        usage = token_usage(response.get("tokens_evaluated"), response.get("tokens_predicted")) if last else None
        return Part(response["content"], ended, usage, last)


def grammar(count: int, *, several: bool = False) -> str:
    """The grammar of an answer, in llama.cpp's notation.

    Args:
        count: how many options there are.
        several: whether any non-empty ascending list of numbers is an answer, or exactly one number.
    """
    if not several:
        return "root ::= " + " | ".join(f'"{number}"' for number in range(1, count + 1))
    # from-i is a list that begins with i or later; so the rules are as many as the options, not as many as their pairs.
    rules = [
        f'from-{number} ::= "{number}" ("," " "? from-{number + 1})? | from-{number + 1}' for number in range(1, count)
    ]
    return "\n".join(["root ::= from-1", *rules, f'from-{count} ::= "{count}"'])
