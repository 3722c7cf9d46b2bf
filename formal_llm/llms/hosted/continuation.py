"""Models behind an HTTP interface that go on with a text, by the completions of vLLM, and of others in its likeness."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from formal_llm.llms.generation import Generated, Stream, chat, first_stop
from formal_llm.llms.hosted.adapter import provider_error
from formal_llm.llms.hosted.openai_client import STREAMS, ChatCompletionsLLM, counted_usage
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text import Part, TextRequest


class CompletionsLLM(ChatCompletionsLLM):
    """A model that is asked through chat completions, and goes on with a text through ``/completions``."""

    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes after a text, see :class:`~formal_llm.llms.generation.ContinuingLLM`; with one request.

        Raises:
            ProviderError: no text came.
        """
        request = TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, continues=True)
        with self.bounds.running() if self.bounds is not None else nullcontext():
            response = self._written(request)
        try:
            part = self._read_completion(response, request)
            if not isinstance(part.text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise provider_error(self, error) from error
        found = first_stop(part.text, stop)
        text, ended = (part.text, part.ended) if found is None else (part.text[: found[0]], found[1])
        return Generated(text, part.usage or counted_usage({}), ended)

    def stream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`continue_text`, piece by piece; what is closed is not read to its end.

        Raises:
            ProviderError: no text came, or it broke off.
        """
        yield from self._told(
            TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, streams=True, continues=True)
        )

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        return self._complete(client, request) if request.continues else super()._send_text(client, request)

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        return self._read_completion(event, request) if request.continues else super()._read_part(event, request)

    def _complete(self, client: Any, request: TextRequest) -> Any:
        asked = given(temperature=request.temperature, stop=list(request.stop) or None)
        asked |= {"include_stop_str_in_output": True} if request.stop else {}  # which one it was is seen in the text
        body = {"model": self.model, "prompt": request.messages[-1].content, "max_tokens": request.max_tokens, **asked}
        return self._post(client, "/completions", {**body, **(STREAMS if request.streams else {}), **self._extra_body})

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        """The text of a response, or of a part of a streamed one."""
        choices = response["choices"]
        choice = choices[0] if choices or not request.streams else {"text": ""}
        told, ended = choice.get("stop_reason"), None
        if choice.get("finish_reason") == "stop":
            ended = told if told in request.stop else ""
        usage = counted_usage(response) if response.get("usage") else None
        return Part(choice["text"], ended, usage, last=choice.get("finish_reason") is not None)
