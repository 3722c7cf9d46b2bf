"""Models on an SGLang server, used through its decisions endpoint, ``/v1/decisions``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Unpack

from formal_llm.errors import ProviderError
from formal_llm.llms.generation import REFUSED
from formal_llm.llms.hosted.adapter import chat_data, invalid
from formal_llm.llms.hosted.decisions import INSTRUCTIONS, read_choice, read_several, statement, with_mass
from formal_llm.llms.hosted.openai_client import Connection, OpenAIClientLLM
from formal_llm.llms.question import Answer, Option, Question
from formal_llm.llms.usage import TokenUsage

#: The maximum number of options of one question: each has a letter.
MOST_LETTERS = 26
#: The maximum number of options of a question with several answers, each of which is a question of its own.
_MOST_STATEMENTS = 128
_GROUPS = "Which of these groups has the option that answers the last question?"


class SGLangLLM(OpenAIClientLLM):
    """A chat model on an SGLang server, which returns probabilities of the options and writes no text.

    The options are sent with their numbers as names and their texts as descriptions. The endpoint accepts 26 of them.
    More options are split into groups, and one request asks for the group and, for each group, for the option in it.
    The probability of an option is that of its group times that within its group, so up to 676 options are possible. A
    question with several answers becomes one yes-or-no question for each option.

    According to the server's documentation its probabilities are not calibrated (see ``formal-llm calibrate``). The
    answer has a ``label_mass``: the sum of the options' probabilities before they were scaled to 1; with groups, the
    smaller one of the two questions that led to it. A refusal is an error.

    Args:
        model: the name of the model on the server.
        connection: the connection to the server, see ``Connection``; by default at ``SGLANG_BASE_URL`` (without
            ``/v1/decisions``), or ``http://localhost:30000``, with the key ``SGLANG_API_KEY`` if it is set.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "sglang"
    key_variable = "SGLANG_API_KEY"
    url_variable = "SGLANG_BASE_URL"
    default_url = "http://localhost:30000"
    needs = "the server must be one of SGLang that has /v1/decisions"

    def __init__(self, model: str, **connection: Unpack[Connection]) -> None:
        super().__init__(model, **connection)

    def _send_question(self, client: Any, question: Question) -> Any:
        count = len(question.options)
        if question.several and count > _MOST_STATEMENTS:
            raise ProviderError(f"{self.name}: at most {_MOST_STATEMENTS} options can be chosen from, not {count}")
        if not question.several and not 2 <= count <= MOST_LETTERS**2:
            raise ProviderError(f"{self.name}: a question has 2 to {MOST_LETTERS**2} options, this one has {count}")
        body = {"model": self.model, "input": chat_data(question.messages), "questions": _build_questions(question)}
        return client.post("/v1/decisions", cast_to=object, body=body, options={"headers": self.headers})

    def _read_answer(self, question: Question, response: Any) -> Answer:
        usage = self._count_usage(response)
        listed = response["answers"]
        answers = dict(listed) if isinstance(listed, dict) else {one["id"]: one for one in listed}
        if any(one["type"] == "refusal" for one in answers.values()):
            raise invalid(question, REFUSED, "", usage)
        if question.several:
            yes = [_read_shares(answers[str(option.number)]).get("yes") for option in question.options]
            return read_several(question, yes, usage)
        groups = _group_options(question.options)
        if len(groups) == 1:
            answer = answers["choice"]
            return with_mass(
                read_choice(question, answer["choice"], _read_shares(answer), usage), answer.get("label_mass")
            )
        return _from_groups(question, groups, answers, usage)


def _group_options(options: Sequence[Option]) -> list[tuple[Option, ...]]:
    """Split the options into the smallest number of groups of at most 26 and similar size."""
    count = -(-len(options) // MOST_LETTERS)
    ends = [len(options) * part // count for part in range(count + 1)]
    return [tuple(options[begin:end]) for begin, end in pairwise(ends)]


def _build_questions(question: Question) -> list[dict[str, Any]]:
    if question.several:
        either = [{"name": "yes", "description": "It does."}, {"name": "no", "description": "It does not."}]
        return [_build_question(str(option.number), statement(option), either) for option in question.options]
    groups = _group_options(question.options)
    within = [[{"name": str(option.number), "description": option.text} for option in group] for group in groups]
    if len(groups) == 1:
        return [_build_question("choice", INSTRUCTIONS, within[0])]
    # A group of one would need no question, but groups have similar sizes: 27 options are split into 13 and 14.
    texts = ["; ".join(option.text for option in group) for group in groups]
    outer = [{"name": f"g{place}", "description": text} for place, text in enumerate(texts, 1)]
    return [_build_question("group", _GROUPS, outer)] + [
        _build_question(f"g{place}", INSTRUCTIONS, inner) for place, inner in enumerate(within, 1)
    ]


def _build_question(name: str, words: str, options: list[dict[str, str]]) -> dict[str, Any]:
    return {"id": name, "type": "choice", "question": words, "options": options}


def _read_shares(answer: Mapping[str, Any]) -> dict[object, object]:
    """Return the probabilities of an answer by the names of options, from an object or a list of pairs."""
    listed = answer.get("probabilities")
    if isinstance(listed, dict):
        return dict(listed)
    if not isinstance(listed, list):
        return {}
    return {one.get("name", one.get("value")): one.get("probability") for one in listed}


def _from_groups(
    question: Question, groups: Sequence[Sequence[Option]], answers: Mapping[str, Any], usage: TokenUsage
) -> Answer:
    """Combine the answers on two levels."""
    outer = _read_shares(answers["group"])
    shares: dict[object, object] = {}
    for place, group in enumerate(groups, 1):
        inner, whole = _read_shares(answers[f"g{place}"]), outer.get(f"g{place}", 0.0)
        for option in group:
            shares[str(option.number)] = float(str(whole)) * float(str(inner.get(str(option.number), 0.0)))
    best = max(shares, key=lambda name: float(str(shares[name])))
    found = read_choice(question, best, shares, usage)
    place = next(n for n, group in enumerate(groups, 1) if any(option.number == found.number for option in group))
    masses = [answers[name].get("label_mass") for name in ("group", f"g{place}")]
    known = [mass for mass in masses if isinstance(mass, (int, float))]
    return with_mass(found, min(known) if len(known) == len(masses) else None)
