"""How probable texts are, by servers that tell it token by token (:class:`~formal_llm.llms.generation.ScoringLLM`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from formal_llm.llms.generation import Messages, chat
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message

#: What a refusal speaks of where a server is too old to tell.
_UNKNOWN = ("grammar", "logprob", "echo")


class ScoredText(HostedLLM):
    """A hosted model that tells how probable given texts are: the server splits chat and texts into tokens itself."""

    def log_probabilities(self, messages: Messages, texts: Sequence[str]) -> list[tuple[float, int]] | None:
        """For each text the natural logarithm of its probability as the answer to a chat, and its number of tokens.

        Two or three requests, and two for each text. What ends a text does not count.

        Returns:
            None where the server cannot tell.

        Raises:
            ProviderError: no answer came.
            ValueError: a text is empty.
        """
        if not all(texts):
            raise ValueError("an empty text has no probability")
        with self._running():
            try:
                before = self._chat_tokens(chat(messages))
                return [self._score(before, self._text_tokens(text)) for text in texts]
            except (AttributeError, IndexError, KeyError, TypeError) as error:
                raise provider_error(self, error) from error
            except Exception as error:
                if _cannot(error):
                    return None
                self._failed(error, False)
                raise

    @abstractmethod
    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a chat, up to where the answer begins."""

    @abstractmethod
    def _text_tokens(self, text: str) -> list[int]:
        """The tokens of a text alone."""

    @abstractmethod
    def _score(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        """The logarithm of the probability of tokens behind others, and their number."""


def _cannot(error: Exception) -> bool:
    """Whether a server refused since it does not know what it is asked for."""
    status, said = getattr(error, "status_code", None), str(error).casefold()
    return status in (404, 405) or (status in (400, 422, 500, 501) and any(word in said for word in _UNKNOWN))


def at_root(base_url: object, path: str) -> str:
    """The address of a path of a server that is not below the version of OpenAI's protocol."""
    return str(base_url).rstrip("/").removesuffix("/v1") + path


def tokens_in(response: Mapping[str, Iterable[int]]) -> list[int]:
    """The tokens that a server made of a text."""
    return [int(token) for token in response["tokens"]]


def summed(told: Sequence[float | None], count: int) -> tuple[float, int]:
    """The sum of the logarithms of tokens, and their number.

    Raises:
        TypeError: there are others than wanted.
    """
    if len(told) != count or any(one is None for one in told):
        raise TypeError(f"the server told {len(told)} of {count} tokens")
    return sum(one for one in told if one is not None), count
