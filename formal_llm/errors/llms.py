"""What can go wrong with a language model, and in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from formal_llm.errors.base import FormalLLMError, did_you_mean


class AskedQuestion(Protocol):
    """A question to an LLM: a ``formal_llm.Question``."""

    @property
    def prompt(self) -> str:
        """Its text."""
        ...

    @property
    def walk(self) -> str:
        """The walk that asks it."""
        ...


class LLMError(FormalLLMError):
    """Base of what can go wrong with the one who answers.

    Attributes:
        usage: what was spent before it (a ``TokenUsage``), where that is known: by earlier tries at the same question.
    """

    usage: Any = None


class UnknownProvider(LLMError, ValueError):
    """A provider string that names no provider.

    Attributes:
        name: the string.
        known: the forms that are understood.
        suggestions: those that were probably meant.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        provider, _, rest = name.partition(":")
        providers = [form.partition(":")[0] for form in known]
        near = provider if provider in providers else did_you_mean(provider, providers)
        forms = [form for form in known if form.partition(":")[0] == near]
        if near != provider and rest:  # only the name of the provider is misspelled
            forms = [f"{near}:{rest}" if ":" in form else form for form in forms]
        self.suggestions = tuple(dict.fromkeys(forms))
        hint = f" Did you mean {' or '.join(map(repr, self.suggestions))}?" if forms else ""
        super().__init__(f"{name!r} names no LLM.{hint} Understood: {', '.join(known)}.")


class MissingKey(LLMError):
    """A hosted model was asked for and its key is not set.

    Attributes:
        variable: the environment variable that holds the key.
    """

    def __init__(self, provider: str, variable: str) -> None:
        self.provider = provider
        self.variable = variable
        super().__init__(
            f"{provider} needs a key: set the environment variable {variable}. "
            f"To plan offline without one, use the llm 'builtin'."
        )


class MissingDependency(LLMError, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""


class InvalidAnswer(LLMError):
    """No legal answer came within the retries.

    Attributes:
        problem: what was wrong with the last one.
        transcript: one pair (prompt, what was answered) for each try.
        usage: what the tries cost (a ``TokenUsage``), where it is known.
    """

    def __init__(self, problem: str, transcript: Sequence[tuple[str, str]] = (), usage: object = None) -> None:
        self.problem = problem
        self.transcript = tuple(transcript)
        self.usage: Any = usage
        tries = f" after {len(self.transcript)} tries" if len(self.transcript) > 1 else ""
        super().__init__(f"no valid answer{tries}: {problem}")


class ModelError(LLMError):
    """A local model that cannot be loaded or used; the message explains what is wrong with it and what to do."""


class WritesNoText(LLMError, TypeError):
    """Free text was wanted of a model that only chooses.

    Args:
        wanted: what it was to do: ``"draft a plan"``.
        instead: what else one could do.

    Attributes:
        llm: what the model is called.
    """

    def __init__(self, llm: object, wanted: str, instead: str = "") -> None:
        self.llm = str(getattr(llm, "name", "") or type(llm).__name__)
        hint = f"; or {instead}" if instead else ""
        super().__init__(
            f"{self.llm} writes no free text, so it cannot {wanted}. Take a model that writes, as "
            f"those of openai:, anthropic:, ollama:, llamacpp:, vllm:, transformers: and smollm2 have{hint}"
        )


class ProviderError(LLMError):
    """The provider failed: no connection, an error status, a refusal.

    Attributes:
        cause: the exception of the provider's SDK, if there was one.
    """

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        self.cause = cause
        super().__init__(message)


class UnreadableResponse(ProviderError):
    """What came back from a provider is no answer: a page of HTML, JSON that was cut. The question is asked again."""


class AnswerFileError(LLMError):
    """A file of recorded answers cannot be used: damaged, of something else, not to be written to.

    Attributes:
        problem: what is wrong with it, and what to do.
        line: the line, counted from 1, in a text file.
    """

    def __init__(self, file: str, problem: str, line: int | None = None) -> None:
        self.file = file
        self.problem = problem
        self.line = line
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {problem}")


class NotRecorded(LLMError, LookupError):
    """A file of recorded answers has none to a question, or all that it has are used.

    Attributes:
        file: the file.
        question: the ``Question`` that was asked.
        recorded: how often it is in the file.
    """

    def __init__(self, file: str, question: AskedQuestion, recorded: int) -> None:
        self.file = file
        self.question: Any = question
        self.recorded = recorded
        asked = " ".join(question.prompt.split())
        shown = asked if len(asked) <= 400 else f"{asked[:200]} ... {asked[-200:]}"
        of = f" of walk {question.walk!r}" if question.walk else ""
        if recorded:
            times = "once" if recorded == 1 else f"{recorded} times"
            what = f"this question{of} was recorded {times} and asked more often (a new RecordedLLM begins anew)"
        else:
            what = f"this question{of} was not recorded; rules, wording and task must be those of the recording"
        super().__init__(f"{file}: {what}: {shown!r}")


class NotAuthored(LLMError):
    """A model did not draft rules that are clean within the tries that it had.

    Attributes:
        drafts: what was tried, in order: each draft, as it was written, and what is wrong with it.
    """

    def __init__(self, drafts: Sequence[tuple[str, Sequence[str]]], usage: object = None) -> None:
        self.drafts = tuple((text, tuple(problems)) for text, problems in drafts)
        self.usage = usage
        lines = [f"no clean rules in {len(self.drafts)} {'try' if len(self.drafts) == 1 else 'tries'}; what was wrong:"]
        for number, (_, problems) in enumerate(self.drafts, 1):
            begun = (problem.partition("\n")[0] for problem in problems[:3])
            lines += [f"  {number}. {problem}" for problem in begun]
        super().__init__("\n".join(lines))


class RewardError(FormalLLMError, ValueError):
    """A reward that is no finite number, one that raised something, or a cache of rewards that cannot be used.

    It is no :class:`ExecutionError`, so it is never taken for a plan that failed.

    Attributes:
        problem: what is wrong, and what to do.
        task: the description of the task; empty where it is about no plan.
        word: the word of the plan; empty where it is about no plan.
        file: the file of the cache; empty where it is about none.
    """

    def __init__(self, problem: str, *, task: str = "", word: Sequence[str] = (), file: str = "") -> None:
        self.problem = problem
        self.task = task
        self.word = tuple(word)
        self.file = file
        place = f"{file}: " if file else ""
        where = f" (task: {task!r}; plan: {' '.join(self.word) or 'the empty word'})" if task or self.word else ""
        super().__init__(f"{place}{problem}{where}")


class TrainingError(FormalLLMError):
    """Training that cannot begin or continue; what was trained until then is in the last checkpoint."""
