"""An LLM that is asked only where that can be afforded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question

P = ParamSpec("P")
R = TypeVar("R")
#: What a model may be able to do.
_ASKED = ("choose", "generate", "continue_text", "stream", "stream_continuation", "log_probabilities")


class Afforded:
    """An LLM that is asked only after something was looked at: whether the budget allows it. It has what the other has.

    Args:
        llm: the other one.
        before: called before each request; may raise.
    """

    def __init__(self, llm: LLM, before: Callable[[], None]) -> None:
        self.takes_text = getattr(llm, "takes_text", False)
        self._before = before
        self._choose = llm.choose
        for name in _ASKED[1:]:
            if hasattr(llm, name):
                setattr(self, name, partial(self._asked, getattr(llm, name)))

    def choose(self, question: Question) -> Answer:
        """What the other one answers."""
        return self._asked(self._choose, question)

    def _asked(self, ask: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        self._before()
        return ask(*args, **kwargs)
