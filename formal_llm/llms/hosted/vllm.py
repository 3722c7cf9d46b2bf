"""Models on a vLLM server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formal_llm.llms.hosted.adapter import chat_data
from formal_llm.llms.hosted.choice_schema import choice_schema
from formal_llm.llms.hosted.continuation import CompletionsLLM
from formal_llm.llms.hosted.scoring import SHORT, at_root, behind, summed, tokens_in
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

    def _guarantee(self, question: Question) -> dict[str, Any]:
        if question.several:
            output: dict[str, Any] = {"json": choice_schema(question, bounded=True)}
        else:
            output = {"choice": [str(option.number) for option in question.options]}
        return {"extra_body": {"structured_outputs": output}}

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        return {"extra_body": {"structured_outputs": {"json": portable(schema, lists=True)}}}

    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        return self._tokens(messages=chat_data(messages), add_generation_prompt=True)

    def _answered_tokens(self, answer: str) -> list[int]:
        chat = chat_data([*SHORT, Message("assistant", answer)])
        whole = self._tokens(messages=chat, add_generation_prompt=False)
        return behind(whole, self._chat_tokens(SHORT), self._text_tokens(answer))

    def _text_tokens(self, text: str) -> list[int]:
        return self._tokens(prompt=text, add_special_tokens=False)

    def _tokens(self, **what: object) -> list[int]:
        return tokens_in(
            self._post(self.client, at_root(self.client.base_url, "/tokenize"), {"model": self.model, **what})
        )

    def _score(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        (found,) = self._score_all(before, [tokens])
        return found

    def _score_all(self, before: Sequence[int], texts: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
        # In one request, since the server reads the shared part of the prompts once. It reports the probabilities of
        # the prompts; the one token that it has to write is left out.
        asked = {"max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
        prompts = [[*before, *tokens] for tokens in texts]
        prompt = prompts[0] if len(prompts) == 1 else prompts
        response = self._post(self.client, "/completions", {"model": self.model, "prompt": prompt, **asked})
        choices = sorted(response["choices"], key=lambda choice: choice.get("index", 0))
        if len(choices) != len(texts):
            raise TypeError(f"the server told {len(choices)} of {len(texts)} texts")
        token_logs = [choice["logprobs"]["token_logprobs"][len(before) :] for choice in choices]
        return [summed(logs[: len(tokens)], len(tokens)) for logs, tokens in zip(token_logs, texts, strict=True)]
