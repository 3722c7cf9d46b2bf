"""The probabilities of texts, by servers that report them token by token."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from formal_llm.llms.generation import Messages, chat
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message

#: The words of a refusal by a server that is too old for it.
_UNKNOWN = ("grammar", "logprob", "echo")
#: The texts whose tokens are remembered.
_KEPT = 10_000
#: A chat by which it is found what ends an answer.
SHORT = (Message("user", "Which?"),)


class ScoredText(HostedLLM):
    """A hosted model that determines the probabilities of texts; the server splits chat and texts into tokens."""

    _end_token: int | None = None

    def log_probabilities(self, messages: Messages, texts: Sequence[str]) -> list[tuple[float, int]] | None:
        """For each text the natural logarithm of its probability as the answer to a chat, and its number of tokens.

        Two or three requests, and two for each text. What ends a text does not count.

        Returns:
            None where the server does not report it.

        Raises:
            ProviderError: no answer came.
            ValueError: a text is empty.
        """
        return self._scored(messages, texts, ended=False)

    def answer_log_probabilities(self, messages: Messages, texts: Sequence[str]) -> list[tuple[float, int]] | None:
        """As :meth:`log_probabilities`, with the token by which the chat template ends an answer: of whole answers."""
        return self._scored(messages, texts, ended=True)

    def _scored(self, messages: Messages, texts: Sequence[str], *, ended: bool) -> list[tuple[float, int]] | None:
        if not all(texts):
            raise ValueError("an empty text has no probability")
        with self._running():
            try:
                if ended:
                    end, before = self._end(), self._chat_tokens(chat(messages))
                    return self._score_all(before, [[*self._tokens_of(text), *end] for text in texts])
                before = self._chat_tokens(chat(messages))
                return [self._score(before, self._text_tokens(text)) for text in texts]
            except (AttributeError, IndexError, KeyError, TypeError) as error:
                raise provider_error(self, error) from error
            except Exception as error:
                if _cannot(error):
                    return None
                self._failed(error, False)
                raise

    def _tokens_of(self, text: str) -> list[int]:
        """As :meth:`_text_tokens`, of which the last are remembered: options come again and again."""
        known = self._known_tokens.get(text)
        if known is None:
            if len(self._known_tokens) >= _KEPT:
                self._known_tokens.clear()
            known = self._known_tokens[text] = self._text_tokens(text)
        return known

    def _end(self) -> list[int]:
        """The token that ends an answer, asked for once.

        Raises:
            KeyError: the template does not write an answer where the model would write it.
        """
        if self._end_token is None:
            self._end_token = self._answered_tokens("1")[0]
        return [self._end_token]

    @property
    def _known_tokens(self) -> dict[str, list[int]]:
        known: dict[str, list[int]] = self.__dict__.setdefault("_text_token_lists", {})
        return known

    def _score_all(self, before: Sequence[int], texts: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
        """As :meth:`_score`, of several texts behind the same chat."""
        return [self._score(before, tokens) for tokens in texts]

    @abstractmethod
    def _answered_tokens(self, answer: str) -> list[int]:
        """What a chat template writes behind an answer, as tokens."""

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


def behind(tokens: Sequence[int], before: Sequence[int], answer: Sequence[int]) -> list[int]:
    """The tokens behind a chat and the answer to it.

    Raises:
        KeyError: they do not stand there.
    """
    start = [*before, *answer]
    if [*tokens[: len(start)]] != start or len(tokens) == len(start):
        raise KeyError("the chat template does not write an answer where the model would")
    return [*tokens[len(start) :]]


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
