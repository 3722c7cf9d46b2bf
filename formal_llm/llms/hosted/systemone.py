"""Decision models on a server that implements the System One protocol."""

from __future__ import annotations

from typing import Any, Unpack

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.adapter import chat_data
from formal_llm.llms.hosted.decisions import INSTRUCTIONS, MOST_OPTIONS, read_choice, read_several, statement, with_mass
from formal_llm.llms.hosted.openai_client import Connection, OpenAIClientLLM
from formal_llm.llms.question import Answer, Question


class SystemOneLLM(OpenAIClientLLM):
    """A decision model behind the System One protocol: it returns probabilities of the options and writes no text.

    The options are the criteria of a ``choice`` question. A question with several answers becomes one ``noul`` question
    (how likely is it?) for each option, all in one request. Requests are made by the generic ``post`` of OpenAI's SDK,
    so retries, waits and timeouts are the same as everywhere.

    Args:
        model: the name of the model on the server.
        connection: the connection to the server, see ``Connection``; by default at ``SYSTEMONE_BASE_URL`` (without
            ``/v1/systemone``), or ``http://localhost:8093``, with the key ``SYSTEMONE_API_KEY`` if it is set, which is
            sent in both headers that servers read.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "systemone"
    key_variable = "SYSTEMONE_API_KEY"
    url_variable = "SYSTEMONE_BASE_URL"
    default_url = "http://localhost:8093"
    needs = "the server must speak System One"

    def __init__(self, model: str, **connection: Unpack[Connection]) -> None:
        super().__init__(model, **connection)

    def _own_headers(self, key: str | None) -> dict[str, Any]:
        # Some servers read the one header, some the other.
        return {**super()._own_headers(key), **({"X-API-Key": key} if key else {})}

    def _send_question(self, client: Any, question: Question) -> Any:
        count = len(question.options)
        if not question.several and not 2 <= count <= MOST_OPTIONS:
            raise ProviderError(
                f"{self.name}: a question to System One has 2 to {MOST_OPTIONS} options, this one has {count}"
            )
        body = {"model": self.model, "state": _build_state(question), "questions": _build_questions(question)}
        return client.post("/v1/systemone", cast_to=object, body=body, options={"headers": self.headers})

    def _read_answer(self, question: Question, response: Any) -> Answer:
        usage = self._count_usage(response)
        answers = response["answers"]
        if question.several:
            found = [_check_type(answers[str(option.number)], "noul")["noul"] for option in question.options]
            return read_several(question, found, usage)
        answer = _check_type(answers["choice"], "choice")
        shares = answer.get("probabilities")
        chosen = read_choice(question, answer["choice"], shares if isinstance(shares, dict) else {}, usage)
        return with_mass(chosen, answer.get("label_mass"))


def _build_state(question: Question) -> dict[str, Any]:
    """Return what the model judges by; the question comes first, since too long texts are cut off at the end."""
    earlier = chat_data(question.messages[:-1])
    return {"question": question.prompt, **({"earlier messages": earlier} if earlier else {})}


def _build_questions(question: Question) -> dict[str, Any]:
    if question.several:
        return {str(option.number): {"type": "noul", "instructions": statement(option)} for option in question.options}
    criteria = {str(option.number): option.text for option in question.options}
    return {"choice": {"type": "choice", "instructions": INSTRUCTIONS, "criteria": criteria}}


def _check_type(answer: Any, kind: str) -> Any:
    if answer["type"] != kind:
        raise ValueError(f"a {answer['type']} is no answer to a {kind}")
    return answer
