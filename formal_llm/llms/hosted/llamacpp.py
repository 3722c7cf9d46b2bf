"""Models on a server of llama.cpp: ``llama-server``."""

from __future__ import annotations

from typing import Any

from formal_llm.llms.generation import CUT_OFF
from formal_llm.llms.hosted.adapter import token_usage
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.openai_client import CompletionsLLM
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text_request import Part, TextRequest
from formal_llm.llms.question import Question
from formal_llm.llms.schemas import Schema, portable


class LlamaCppLLM(CompletionsLLM):
    """A model on a llama.cpp server; a grammar (GBNF) restricts it to the option numbers.

    The text of the answer is one of the numbers and nothing else; if several may be chosen, numbers in ascending order,
    separated by commas. Probabilities are computed from those of the tokens.

    It continues a text (``continue_text``) with ``/completion``, which reports what ended the text.

    Args:
        settings: as of :class:`~formal_llm.llms.hosted.vllm.VLLM`; by default at ``LLAMACPP_BASE_URL``, or
            ``http://localhost:8080/v1``, with the key ``LLAMACPP_API_KEY`` if it is set.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "llamacpp"
    key_variable = "LLAMACPP_API_KEY"
    url_variable = "LLAMACPP_BASE_URL"
    default_url = "http://localhost:8080/v1"
    needs = "the server must be one of llama.cpp, which knows grammars"
    choice_limit = "max_tokens"

    def _restrict_choice(self, question: Question) -> dict[str, Any]:
        body: dict[str, Any] = {"grammar": grammar(len(question.options), several=question.several)}
        if self.asks_logprobs and not question.several:
            body["n_probs"] = MOST_ALTERNATIVES
        return {"extra_body": body}

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        # Bounds of texts would become grammars that llama.cpp refuses.
        return {"response_format": {"type": "json_object", "schema": portable(schema, lists=True)}}

    def _request_completion(self, client: Any, request: TextRequest) -> Any:
        body = {"prompt": request.messages[-1].content, "n_predict": request.max_tokens, "cache_prompt": True}
        asked = given(temperature=request.temperature, stop=list(request.stop) or None, stream=request.streams or None)
        # Not below the version of OpenAI's protocol.
        address = str(client.base_url).rstrip("/").removesuffix("/v1") + "/completion"
        return self._post_json(client, address, {**body, **asked, **self._extra_body})

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        kind = response.get("stop_type")
        word = response.get("stopping_word")
        ended = {"eos": "", "word": word if word in request.stop else ""}.get(str(kind))
        last = bool(kind and kind != "none")
        usage = token_usage(response.get("tokens_evaluated"), response.get("tokens_predicted")) if last else None
        return Part(response["content"], ended, usage, last, CUT_OFF if last and ended is None else "")


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
