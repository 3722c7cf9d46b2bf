"""What the page may ask, and the answers: generators of parts, each shown as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from formal_llm.errors import FormalLLMError
from formal_llm.studio import judging, language, stepping
from formal_llm.studio.parts import Asked, BadQuestion, Parts, text_of
from formal_llm.studio.rules import problem

#: The questions by name, each with the seconds that its answer may take before it is given up.
QUESTIONS: Mapping[str, tuple[Callable[[Asked], Parts], float]] = MappingProxyType(
    {
        "check": (language.check, 20),
        "picture": (language.picture, 20),
        "step": (stepping.step, 20),
        "branches": (stepping.branches, 20),
        "judge": (judging.judge, 30),
        "compare": (judging.compare, 30),
        "run": (stepping.run, 3600),
    }
)


def answer(asked: Asked) -> Parts:
    """The parts of the answer to a question; what is wrong with the question is a part as well."""
    try:
        name = text_of(asked, "question")
        if name not in QUESTIONS:
            raise BadQuestion(f"there is no question {name!r}; there are: {', '.join(QUESTIONS)}")
        yield from QUESTIONS[name][0](asked)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
    except BadQuestion as error:
        yield {"part": "bad question", "reason": str(error)}
    except RecursionError:
        yield {"part": "bad question", "reason": "this is nested too deeply to be looked at"}
