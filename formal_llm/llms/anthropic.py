"""Models of Anthropic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from formal_llm.errors import MissingKey
from formal_llm.llms.choice_schema import CUT_OFF, REFUSED, Reply, SchemaLLM, provider_error
from formal_llm.llms.question import Question, TokenUsage

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import MessageParam

_STOPPED = {"refusal": REFUSED, "max_tokens": CUT_OFF, "model_context_window_exceeded": CUT_OFF}


class AnthropicLLM(SchemaLLM):
    """A model that is asked through the messages endpoint with a JSON schema for its output.

    Key, address, retries and timeouts are the SDK's: ``ANTHROPIC_API_KEY`` (or another credential that the SDK finds)
    and ``ANTHROPIC_BASE_URL`` in the environment, or a ``client``. Sampling parameters are never sent: the SDK's call
    has none.

    Args:
        model: the name of the model.
        client: the SDK's client, where the environment is not enough; it is yours to close.
        max_tokens: the limit on what the model writes. Thinking counts too, and some models think unasked, so it is
            far more than an answer needs; what is not used costs nothing. Above about 21000 the SDK wants a client
            with a timeout of its own.

    Attributes:
        client: the SDK's client in use.

    Raises:
        MissingKey: no client was given and the SDK finds no credential.
        ProviderError: the SDK found credentials that it cannot use.
    """

    def __init__(self, model: str, *, client: anthropic.Anthropic | None = None, max_tokens: int = 8192) -> None:
        # Imported here: the SDK takes longer to import than the rest of the library.
        import anthropic

        super().__init__(f"anthropic:{model}", anthropic.AnthropicError)
        if client is None:
            try:
                client = anthropic.Anthropic()
            except anthropic.AnthropicError as error:
                raise provider_error(self.name, error) from error
            # The SDK says nothing about a missing credential before the first request.
            if not ((client.api_key or "").strip() or client.auth_token or client.credentials):
                client.close()
                raise MissingKey(self.name, "ANTHROPIC_API_KEY")
        self.model = model
        self.client = client
        self.max_tokens = max_tokens

    def _send(self, question: Question, schema: dict[str, object]) -> Any:
        from anthropic import omit

        system = "\n\n".join(message.content for message in question.messages if message.role == "system")
        messages = [
            {"role": message.role, "content": message.content}
            for message in question.messages
            if message.role != "system"
        ]
        return self.client.messages.create(
            model=self.model,
            max_tokens=self.max_tokens,
            system=system or omit,
            messages=cast("list[MessageParam]", messages),
            output_config={"format": {"type": "json_schema", "schema": schema}},
        )

    def _reply(self, response: Any) -> Reply:
        # Other blocks hold the model's thinking.
        text = "".join(block.text for block in response.content if block.type == "text")
        if response.stop_reason == "refusal" and not text and response.stop_details:
            text = response.stop_details.explanation or ""
        counted = response.usage
        # What went into the cache or came out of it is not in ``input_tokens``.
        cached = (counted.cache_creation_input_tokens or 0) + (counted.cache_read_input_tokens or 0)
        usage = TokenUsage(1, counted.input_tokens + cached, counted.output_tokens)
        return Reply(text, usage, _STOPPED.get(response.stop_reason, ""))
