"""The probabilities of texts, by servers that report them token by token."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from formal_llm.llms.generation import Messages, chat
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message

#: The words in the refusal of a server that is too old to report probabilities.
_UNKNOWN = ("grammar", "logprob", "echo")
#: The maximum number of texts whose tokens are remembered.
_KEPT = 10_000
#: A chat for finding the token that ends an answer.
SHORT = (Message("user", "Which?"),)


class ScoredText(HostedLLM):
    """A hosted model that computes the probabilities of given texts; the server splits chats and texts into tokens."""

    _end_token: int | None = None

    def log_probabilities(self, messages: Messages, texts: Sequence[str]) -> list[tuple[float, int]] | None:
        """Return for each text its natural log-probability as the answer to a chat, and its number of tokens.

        It takes two or three requests, and two for each text. The token that ends a text does not count.

        Returns:
            None if the server does not report probabilities.

        Raises:
            ProviderError: the server gave no answer.
            ValueError: a text is empty.
        """
        return self._score_continuations(messages, texts, ended=False)

    def answer_log_probabilities(self, messages: Messages, texts: Sequence[str]) -> list[tuple[float, int]] | None:
        """Like :meth:`log_probabilities`, including the token with which the chat template ends an answer."""
        return self._score_continuations(messages, texts, ended=True)

    def _score_continuations(
        self, messages: Messages, texts: Sequence[str], *, ended: bool
    ) -> list[tuple[float, int]] | None:
        if not all(texts):
            raise ValueError("an empty text has no probability")
        with self._scrub_errors(), self._run_within_bounds():
            try:
                if ended:
                    end, before = self._find_end_tokens(), self._chat_tokens(chat(messages))
                    return self._score_all(before, [[*self._tokens_of(text), *end] for text in texts])
                before = self._chat_tokens(chat(messages))
                return [self._score_text(before, self._text_tokens(text)) for text in texts]
            except (AttributeError, IndexError, KeyError, TypeError) as error:
                raise provider_error(self, error) from error
            except Exception as error:
                if _is_unsupported(error):
                    return None
                self._raise_failure(error, False)
                raise

    def _tokens_of(self, text: str) -> list[int]:
        """Like :meth:`_text_tokens`, with a cache, since the same options come repeatedly."""
        known = self._known_tokens.get(text)
        if known is None:
            if len(self._known_tokens) >= _KEPT:
                self._known_tokens.clear()
            known = self._known_tokens[text] = self._text_tokens(text)
        return known

    def _find_end_tokens(self) -> list[int]:
        """Return the token that ends an answer, requested once.

        Raises:
            KeyError: the template does not put an answer where the model would write it.
        """
        if self._end_token is None:
            self._end_token = self._answered_tokens("1")[0]
        return [self._end_token]

    @property
    def _known_tokens(self) -> dict[str, list[int]]:
        known: dict[str, list[int]] = self.__dict__.setdefault("_text_token_lists", {})
        return known

    def _score_all(self, before: Sequence[int], texts: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
        """Like :meth:`_score_text`, for several texts after the same chat."""
        return [self._score_text(before, tokens) for tokens in texts]

    @abstractmethod
    def _answered_tokens(self, answer: str) -> list[int]:
        """Return the tokens that a chat template writes after an answer."""

    @abstractmethod
    def _chat_tokens(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a chat, up to the beginning of the answer."""

    @abstractmethod
    def _text_tokens(self, text: str) -> list[int]:
        """Return the tokens of a text alone."""

    @abstractmethod
    def _score_text(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[float, int]:
        """Return the log-probability of tokens after others, and their number."""


def _is_unsupported(error: Exception) -> bool:
    """Return whether a server refused a request because it does not support it."""
    status, message = getattr(error, "status_code", None), str(error).casefold()
    return status in (404, 405) or (status in (400, 422, 500, 501) and any(word in message for word in _UNKNOWN))


def behind(tokens: Sequence[int], before: Sequence[int], answer: Sequence[int]) -> list[int]:
    """Return the tokens after a chat and the answer to it.

    Raises:
        KeyError: the tokens do not begin with the chat and the answer.
    """
    start = [*before, *answer]
    if [*tokens[: len(start)]] != start or len(tokens) == len(start):
        raise KeyError("the chat template does not write an answer where the model would")
    return [*tokens[len(start) :]]


def at_root(base_url: object, path: str) -> str:
    """Return the address of a server's path that is not below the version of OpenAI's protocol."""
    return str(base_url).rstrip("/").removesuffix("/v1") + path


def tokens_in(response: Mapping[str, Iterable[int]]) -> list[int]:
    """Return the tokens in a server's response."""
    return [int(token) for token in response["tokens"]]


def summed(logs: Sequence[float | None], count: int) -> tuple[float, int]:
    """Return the sum of the tokens' logarithms, and their number.

    Raises:
        TypeError: the number of logarithms is wrong, or one is missing.
    """
    if len(logs) != count or any(one is None for one in logs):
        raise TypeError(f"the server reported {len(logs)} of {count} tokens")
    return sum(one for one in logs if one is not None), count
