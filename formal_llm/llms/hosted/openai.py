"""Models of OpenAI, and of servers that support its chat completions with JSON schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from formal_llm.llms.generation import REFUSED
from formal_llm.llms.hosted.adapter import invalid, sdk_usage
from formal_llm.llms.hosted.choice_schema import choice_schema
from formal_llm.llms.hosted.decisions import INSTRUCTIONS, MOST_OPTIONS, read_choice, read_several, statement
from formal_llm.llms.hosted.openai_client import ChatCompletionsLLM, Connection
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import httpx2

#: The models that the decisions endpoint supports, according to the SDK's documentation of ``decisions.create``.
DECISION_MODELS = frozenset({"gpt-6-luna"})
#: The maximum number of questions in one request to the decisions endpoint.
_MOST_QUESTIONS = 400


class OpenAILLM(ChatCompletionsLLM):
    """A model of OpenAI, used through the decisions endpoint if that supports it, otherwise through chat completions.

    *Decisions*: the options are the choices of a ``choice`` question, so nothing else can be chosen, and the answer has
    their probabilities. A question with several answers becomes one ``predicate`` question for each option, all in one
    request. Questions beyond the endpoint's limits (fewer than 2 or more than 255 options, more than 400 statements)
    are asked through chat completions.

    *Chat completions*: a strict JSON schema with an enum of the option numbers. The probabilities are those of the
    tokens, if the model returns them.

    Args:
        api: ``"decisions"``, ``"chat"``, or ``"auto"``: decisions for the models in ``DECISION_MODELS``.
        temperature: the sampling temperature in chats; None sends none (many models only accept their own).
        max_completion_tokens: the maximum number of tokens written and thought in chats; None sends none.
        logprobs: whether to request token probabilities in chats; None: until the server refuses them (as for models
            that think).
        connection: the connection to the server, see ``Connection``; by default OpenAI's, or the one at
            ``OPENAI_BASE_URL``, with the key ``OPENAI_API_KEY``.

    Raises:
        MissingKey: there is no client and no key, and ``OPENAI_API_KEY`` is not set.
        ProviderError: the address is not valid.
    """

    provider = "openai"
    key_variable = "OPENAI_API_KEY"
    url_variable = "OPENAI_BASE_URL"
    needs_key = True
    text_limit = "max_completion_tokens"
    batches = "openai"

    def __init__(
        self,
        model: str,
        *,
        api: Literal["auto", "decisions", "chat"] = "auto",
        temperature: float | None = None,
        max_completion_tokens: int | None = None,
        logprobs: bool | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        if api not in ("auto", "decisions", "chat"):
            raise ValueError(f"api is 'auto', 'decisions' or 'chat', not {api!r}")
        decides = api == "decisions" or (api == "auto" and model in DECISION_MODELS)
        self.api = "decisions" if decides else "chat"
        super().__init__(
            model,
            temperature=temperature,
            max_completion_tokens=max_completion_tokens,
            logprobs=logprobs,
            **connection,
        )
        self.settings["api"] = self.api

    def for_batches(self, transport: httpx2.BaseTransport) -> Self:
        """Return the same model behind a transport; it asks by chat, since batches have no decisions endpoint."""
        twin = super().for_batches(transport)
        twin.api = twin.settings["api"] = "chat"
        return twin

    def _send_question(self, client: Any, question: Question) -> Any:
        if not self._uses_decision(question):
            return super()._send_question(client, question)
        return client.decisions.create(
            model=self.model,
            input=[_convert_message(message) for message in question.messages],
            questions=_build_questions(question),
        )

    def _read_answer(self, question: Question, response: Any) -> Answer:
        if not self._uses_decision(question):
            return super()._read_answer(question, response)
        usage = self._count_usage(response)
        answers = list(response.answers)
        if any(answer.type == "refusal" for answer in answers):
            raise invalid(question, REFUSED, "", usage)
        # The answers have the order and the names of the questions.
        asked = [(one["type"], one["name"]) for one in _build_questions(question)]
        if [(answer.type, answer.name) for answer in answers] != asked:
            raise ValueError("the answers are not those to the questions")
        if question.several:
            return read_several(question, [answer.probability for answer in answers], usage)
        shares = {share.value: share.probability for share in answers[0].probabilities}
        return read_choice(question, answers[0].choice, shares, usage)

    def _count_usage(self, response: Any) -> TokenUsage:
        if isinstance(response, dict):  # a chat completion
            return super()._count_usage(response)
        return sdk_usage(response.usage, "input_tokens", "output_tokens")

    def _uses_decision(self, question: Question) -> bool:
        """Return whether the decisions endpoint is used for a question."""
        count = len(question.options)
        return self.api == "decisions" and (
            count <= _MOST_QUESTIONS if question.several else 2 <= count <= MOST_OPTIONS
        )

    def _restrict_choice(self, question: Question) -> dict[str, Any]:
        schema = {"name": "choice", "strict": True, "schema": choice_schema(question)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _build_questions(question: Question) -> list[dict[str, Any]]:
    """Return a question in the form of the decisions endpoint."""
    if question.several:
        return [
            {"type": "predicate", "name": str(option.number), "instructions": statement(option)}
            for option in question.options
        ]
    choices = [{"value": str(option.number), "description": option.text} for option in question.options]
    return [{"type": "choice", "name": "choice", "instructions": INSTRUCTIONS, "choices": choices}]


def _convert_message(message: Message) -> dict[str, Any]:
    """Return a message in the form of the decisions endpoint, which requires a model's message in parts."""
    content: Any = message.content
    if message.role == "assistant":
        content = [{"type": "output_text", "text": message.content}]
    return {"type": "message", "role": message.role, "content": content}
