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
    """A model on a vLLM server (0.11 or newer), held to the option numbers by structured output.

    The text of the answer is one of the numbers and nothing else; where several may be chosen, a JSON list of them.
    Probabilities come from those of the tokens. It continues a text, too (``continue_text``), and
    determines how probable given texts are (``log_probabilities``).

    Args:
        model: the name of the model, as the server has it.
        temperature: the sampling temperature; None: the server's default.
        max_completion_tokens: the limit on what the model writes and thinks; None sends none.
        logprobs: whether token probabilities are asked for; None: until the server refuses them.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        connection: how the server is reached, see ``Connection``; by default at ``VLLM_BASE_URL``, or
            ``http://localhost:8000/v1``, with the key ``VLLM_API_KEY`` where there is one.

    Raises:
        ProviderError: the address is none.
    """

    provider = "vllm"
    key_variable = "VLLM_API_KEY"
    url_variable = "VLLM_BASE_URL"
    default_url = "http://localhost:8000/v1"
    needs = "the server must know structured_outputs (vLLM 0.11 or newer)"

    def _guarantee(self, question: Question) -> dict[str, Any]:
        if question.several:
            held: dict[str, Any] = {"json": choice_schema(question, bounded=True)}
        else:
            held = {"choice": [str(option.number) for option in question.options]}
        return {"extra_body": {"structured_outputs": held}}

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
        # In one request: what the prompts share the server reads once. It reports what it reads; the one token that
        # it has to write is left out.
        asked = {"max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
        prompts = [[*before, *tokens] for tokens in texts]
        prompt = prompts[0] if len(prompts) == 1 else prompts
        made = self._post(self.client, "/completions", {"model": self.model, "prompt": prompt, **asked})
        choices = sorted(made["choices"], key=lambda choice: choice.get("index", 0))
        if len(choices) != len(texts):
            raise TypeError(f"the server told {len(choices)} of {len(texts)} texts")
        told = [choice["logprobs"]["token_logprobs"][len(before) :] for choice in choices]
        return [summed(logs[: len(tokens)], len(tokens)) for logs, tokens in zip(told, texts, strict=True)]
