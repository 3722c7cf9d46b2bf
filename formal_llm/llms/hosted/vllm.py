"""Models on a vLLM server."""

from __future__ import annotations

from typing import Any

from formal_llm.llms.hosted.choice_schema import choice_schema
from formal_llm.llms.hosted.openai_client import CompletionsLLM
from formal_llm.llms.question import Question
from formal_llm.llms.schemas import Schema, portable


class VLLM(CompletionsLLM):
    """A model on a vLLM server (0.11 or newer); structured output restricts it to the option numbers.

    The text of the answer is one of the numbers and nothing else; if several may be chosen, a JSON list of them.
    Probabilities are computed from those of the tokens. It also continues texts (``continue_text``).

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
