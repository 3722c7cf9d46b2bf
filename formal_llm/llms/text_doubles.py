"""Simple writers of text: functions, scripts and chance, for tests and baselines and as public as the real ones.

Each chats, goes on with a text, and does both piece by piece; each also answers questions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from formal_llm.errors import LLMError
from formal_llm.llms.doubles import FunctionLLM, RandomLLM, ScriptedLLM
from formal_llm.llms.generation import Generated, Messages, Stream, Writing
from formal_llm.llms.question import Answer, AnswerLike, Question
from formal_llm.llms.stops import first_stop
from formal_llm.llms.texts import Texts
from formal_llm.llms.usage import TokenUsage

#: How many characters count as a token here.
TOKEN = 4


class FunctionTextLLM:
    """Writes with a function of the request: the whole text, which is cut to its stops and its tokens.

    Four characters are a token, and so they are counted.

    Args:
        function: the text for a :class:`~formal_llm.llms.generation.Writing`; ``asked.continues`` tells the two kinds
            apart, ``asked.prompt`` is the text to go on with, or what the user said last.
        choose: answers questions; without it, always the first option.
        piece: how many characters come at a time where the text is streamed.
    """

    #: Its ``choose`` takes a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True
    name = "test:text"

    def __init__(
        self,
        function: Callable[[Writing], str],
        choose: Callable[[Question], AnswerLike] | None = None,
        *,
        piece: int = 3,
    ) -> None:
        self._function = function
        self._chooses = FunctionLLM(choose or (lambda _: 1))
        self._piece = piece
        self.generate, self.continue_text = Texts(self.choose).generate, Texts(self.choose).continue_text

    def choose(self, question: Question) -> Answer:
        """What the function chooses or writes."""
        if not isinstance(question, Writing):
            return self._chooses.choose(question)
        text = self._function(question)
        most = question.max_tokens * TOKEN
        found = first_stop(text[:most], question.stop)
        ended = found[1] if found is not None else "" if len(text) <= most else None
        text = text[:most] if found is None else text[: found[0]]
        read = sum(len(message.content) for message in question.messages)
        return Answer((), text=text, usage=TokenUsage(1, read // TOKEN, -(-len(text) // TOKEN)), ended=ended)

    def stream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As ``generate``, piece by piece."""
        yield from self._pieces(self.generate(messages, max_tokens=max_tokens, stop=stop, temperature=temperature))

    def stream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As ``continue_text``, piece by piece."""
        yield from self._pieces(self.continue_text(prompt, max_tokens=max_tokens, stop=stop, temperature=temperature))

    def _pieces(self, made: Generated) -> Stream:
        for at in range(0, len(made.text), self._piece):
            yield made.text[at : at + self._piece]
        yield made


class ScriptedTextLLM(FunctionTextLLM):
    """Writes prepared texts in turn, then fails.

    Args:
        texts: the text for each request; of one with more tokens than are asked for, the rest is lost.
        answers: the answers to questions, as of :class:`~formal_llm.llms.ScriptedLLM`.
        piece: as of :class:`FunctionTextLLM`.

    Attributes:
        requests: the requests for text so far.
    """

    def __init__(self, texts: Iterable[str], answers: Iterable[AnswerLike] = (), *, piece: int = 3) -> None:
        self.requests: list[Writing] = []
        super().__init__(partial(_next, iter(texts), self.requests), ScriptedLLM(answers).choose, piece=piece)


def _next(texts: Iterator[str], requests: list[Writing], asked: Writing) -> str:
    requests.append(asked)
    try:
        return next(texts)
    except StopIteration:
        raise LLMError(f"the script ended before text {len(requests)}") from None


class RandomTextLLM(FunctionTextLLM):
    """Writes random words in random number.

    Args:
        seed: the seed.
        words: what it strings together: words, markers, halves of markers, blanks.
        most: how many words a text has at most; the number of each is drawn.
        piece: as of :class:`FunctionTextLLM`.
    """

    def __init__(self, seed: int = 0, words: Sequence[str] = ("so ", "then ", "42 "), *, most: int = 8, piece: int = 3):
        rng = random.Random(seed)
        super().__init__(
            lambda _: "".join(rng.choices(words, k=rng.randint(0, most))), RandomLLM(seed).choose, piece=piece
        )
