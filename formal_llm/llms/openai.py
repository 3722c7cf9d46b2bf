"""Models of OpenAI, and of every server that speaks its chat completions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from formal_llm.errors import MissingKey
from formal_llm.llms.choice_schema import CUT_OFF, FILTERED, REFUSED, Reply, SchemaLLM
from formal_llm.llms.question import Question, TokenUsage

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionMessageParam

_STOPPED = {"length": CUT_OFF, "content_filter": FILTERED}


class OpenAILLM(SchemaLLM):
    """A model that is asked through chat completions with a strict JSON schema.

    Key, address, retries and timeouts are the SDK's: ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` in the environment,
    or a ``client``.

    Args:
        model: the name of the model.
        client: the SDK's client, where the environment is not enough; it is yours to close.
        temperature: the sampling temperature; None sends none (many models take none but their own).
        max_completion_tokens: the limit on what the model writes and thinks; None sends none.

    Attributes:
        client: the SDK's client in use.

    Raises:
        MissingKey: no client was given and ``OPENAI_API_KEY`` is not set.
    """

    def __init__(
        self,
        model: str,
        *,
        client: openai.OpenAI | None = None,
        temperature: float | None = None,
        max_completion_tokens: int | None = None,
    ) -> None:
        # Imported here: the SDK takes longer to import than the rest of the library.
        import openai

        super().__init__(f"openai:{model}", openai.OpenAIError)
        # Looked at here and not left to the SDK, which is also content with a key for administration alone.
        if client is None and not os.environ.get("OPENAI_API_KEY", "").strip():
            raise MissingKey(self.name, "OPENAI_API_KEY")
        self.model = model
        self.client = client if client is not None else openai.OpenAI()
        self.temperature = temperature
        self.max_completion_tokens = max_completion_tokens

    def _send(self, question: Question, schema: dict[str, object]) -> Any:
        from openai import omit

        messages = [{"role": message.role, "content": message.content} for message in question.messages]
        return self.client.chat.completions.create(
            model=self.model,
            messages=cast("list[ChatCompletionMessageParam]", messages),
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "choice", "strict": True, "schema": schema},
            },
            temperature=omit if self.temperature is None else self.temperature,
            max_completion_tokens=omit if self.max_completion_tokens is None else self.max_completion_tokens,
        )

    def _reply(self, response: Any) -> Reply:
        choice = response.choices[0]
        # Not every server that speaks the protocol counts tokens.
        counted = response.usage
        usage = TokenUsage(1)
        if counted:
            usage = TokenUsage(1, counted.prompt_tokens or 0, counted.completion_tokens or 0)
        if choice.message.refusal:
            return Reply(choice.message.refusal, usage, REFUSED)
        return Reply(choice.message.content or "", usage, _STOPPED.get(choice.finish_reason, ""))
