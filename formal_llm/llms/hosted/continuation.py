"""Models behind an HTTP interface that continue a text, with the completions endpoint of vLLM and similar servers."""

from __future__ import annotations

from typing import Any

from formal_llm.llms.generation import CUT_OFF
from formal_llm.llms.hosted.openai_client import STREAMS, ChatCompletionsLLM, counted_usage
from formal_llm.llms.hosted.scoring import ScoredText
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text import ContinuedText
from formal_llm.llms.hosted.text_request import Part, TextRequest


class CompletionsLLM(ChatCompletionsLLM, ContinuedText, ScoredText):
    """A model that uses chat completions, and continues a text through ``/completions``."""

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        return self._complete(client, request) if request.continues else super()._send_text(client, request)

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        return self._read_completion(event, request) if request.continues else super()._read_part(event, request)

    def _read_whole(self, response: Any, request: TextRequest) -> Part:
        return self._read_completion(response, request) if request.continues else super()._read_whole(response, request)

    def _complete(self, client: Any, request: TextRequest) -> Any:
        asked = given(temperature=request.temperature, stop=list(request.stop) or None)
        asked |= {"include_stop_str_in_output": True} if request.stop else {}  # the text shows which stop it was
        body = {"model": self.model, "prompt": request.messages[-1].content, "max_tokens": request.max_tokens, **asked}
        return self._post(client, "/completions", {**body, **(STREAMS if request.streams else {}), **self._extra_body})

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        """Read the text of a response, or of a part of a streamed one."""
        choices = response["choices"]
        choice = choices[0] if choices or not request.streams else {"text": ""}
        stop_reason, ended = choice.get("stop_reason"), None
        if choice.get("finish_reason") == "stop":
            ended = stop_reason if stop_reason in request.stop else ""
        usage = counted_usage(response) if response.get("usage") else None
        stopped = CUT_OFF if choice.get("finish_reason") == "length" else ""
        return Part(choice["text"], ended, usage, choice.get("finish_reason") is not None, stopped)
