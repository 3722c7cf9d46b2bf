"""Every exception that formal_llm raises on purpose.

::

    FormalLLMError
    ├── NotationError (ValueError)       a text does not follow its notation: file, line, column, caret
    │   └── GrammarError                 a grammar cannot be read or makes no sense
    ├── AutomatonError (ValueError)      an automaton written in code contradicts itself
    ├── Undecided                        a question about an automaton was not decided within its budget
    ├── InfiniteLanguage                 there are infinitely many plans; a bound on their length is needed
    ├── ResourceNotFound (LookupError)   no grammar, task pack or file of that name
    ├── PlanningError
    │   ├── NoValidPlan                  nothing follows all the rules: grammar, constraints, limits
    │   ├── BudgetExceeded               a walk used up its questions, steps or backtracks; it can go on
    │   ├── WalkError                    a walk was asked for what it cannot do now
    │   ├── ResultsError                 a results file is in use, damaged, or another run's
    │   ├── NoPlanWorked                 plans were made and run, and each met a tool that failed: which tools
    │   ├── TooManyPlans                 a task has more plans than shall be listed
    │   └── SnapshotError (ValueError)   a snapshot is damaged or belongs to another automaton
    ├── ExecutionError                   base of what can go wrong when a plan is executed
    │   ├── ToolkitError (ValueError)    tools contradict each other or the grammar; told before anything runs
    │   ├── InputError (ValueError)      an input is missing, too large, damaged, outside its folder, of another kind
    │   ├── ToolError                    a tool failed, hung, used too much memory, or returned the wrong kind
    │   ├── CheckpointError              the model of a tool cannot be had or does not fit: tool, checkpoint, way out
    │   └── Cancelled                    an execution was cancelled
    ├── RewardError (ValueError)         a reward is no finite number, or its cache cannot be used: task, word, file
    ├── TrainingError                    training cannot begin or go on: settings, checkpoint, a figure that is none
    └── LLMError
        ├── UnknownProvider (ValueError) a provider string that names no provider
        ├── MissingKey                   a hosted model without its key
        ├── MissingDependency (ImportError)  an optional library is not installed
        ├── InvalidAnswer                no legal answer within the retries; carries the transcript
        ├── ProviderError                the provider failed or refused
        ├── ModelError                   a local model cannot be loaded or used: what and why
        ├── AnswerFileError              a cache or a transcript of answers cannot be used: file, line
        └── NotRecorded (LookupError)    a transcript has no answer, or none left, to a question

``GrammarWarning`` is the one warning: a grammar that works but probably says something else than its author meant.

An exception carries its facts as attributes; its text is for a person.
"""

from __future__ import annotations

import copyreg
import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formal_llm.llms.question import Question, TokenUsage
    from formal_llm.planning.plans.plan import Plan, Step


class FormalLLMError(Exception):
    """Base of all exceptions of this library."""

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled and copied without their constructors, which take facts and not the text.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class GrammarWarning(UserWarning):
    """A grammar, formula or behaviour that can be used, but probably says something else than its author meant."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to ``name``, or None when nothing is near (letter case does not count)."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None


class NotationError(FormalLLMError, ValueError):
    """A text that does not follow its notation.

    Attributes:
        problem: what is wrong, in one sentence.
        file: the name of the source, or None for a string.
        line, column: the place, counted from 1; None where the trouble is no single place.
        source_line: the text of that line.
        expected: what could have stood there.
        suggestion: the nearest known name, or another way out.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        source_line: str | None = None,
        expected: Sequence[str] = (),
        suggestion: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        self.source_line = source_line
        self.expected = tuple(expected)
        self.suggestion = suggestion
        super().__init__(problem)

    def __str__(self) -> str:
        place = [self.file or "<string>"]
        if self.line is not None:
            place.append(str(self.line))
            if self.column is not None:
                place.append(str(self.column))
        lines = [f"{':'.join(place)}: {self.problem}"]
        if self.source_line is not None:
            number = "" if self.line is None else str(self.line)
            # Tabs are shown as one blank each, so that the caret stands under its character.
            lines.append(f"  {number} | {self.source_line.expandtabs(1)}")
            if self.column is not None:
                lines.append(f"  {' ' * len(number)} | {' ' * (self.column - 1)}^")
        if self.expected:
            lines.append(f"  expected: {', '.join(self.expected)}")
        if self.suggestion:
            lines.append(f"  {self.suggestion}")
        return "\n".join(lines)


class GrammarError(NotationError):
    """A grammar that cannot be read, or that describes no language."""


class AutomatonError(FormalLLMError, ValueError):
    """An automaton written in code that contradicts itself (unknown state, symbol never pushed, ...)."""


class Undecided(FormalLLMError):
    """A question about an automaton was not decided within its budget of states."""


class InfiniteLanguage(FormalLLMError):
    """There are infinitely many of what was to be counted; give a bound on the length (``max_length``)."""


class ResourceNotFound(FormalLLMError, LookupError):
    """No grammar, task pack or file of that name.

    Attributes:
        name: what was asked for.
        known: the names there are.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        near = did_you_mean(name, self.known)
        hint = f" Did you mean {near!r}?" if near else ""
        there = f" There are: {', '.join(self.known)}." if self.known else ""
        super().__init__(f"no {kind} {name!r}.{hint}{there}")


class PlanningError(FormalLLMError):
    """Base of what can go wrong while a plan is made."""


class NoValidPlan(PlanningError):
    """No plan follows all the rules.

    Attributes:
        reason: why, in words.
        symbols: the grammar symbols that cannot be completed, where they are to blame.
        limits: the limits that clash, as they would be written in a grammar file, where they are to blame.
        constraints: the names of the constraints that clash, with each other or with those limits.
        remedy: a smallest set of limits and constraints without which there is a plan; empty where none is known.
    """

    def __init__(
        self,
        reason: str,
        *,
        symbols: Sequence[str] = (),
        limits: Sequence[str] = (),
        constraints: Sequence[str] = (),
        remedy: Sequence[str] = (),
    ) -> None:
        self.reason = reason
        self.symbols = tuple(symbols)
        self.limits = tuple(limits)
        self.constraints = tuple(constraints)
        self.remedy = tuple(remedy)
        super().__init__(f"no valid plan: {reason}")


class BudgetExceeded(PlanningError):
    """A walk used up one of its budgets. Raise the budget on the walk and it goes on from where it stands.

    A best-first search does not go on but starts anew; what it has found is in ``plan``.

    Attributes:
        kind: ``"questions"``, ``"steps"``, ``"backtracks"``, ``"requests"``, ``"tokens"`` or ``"cost"``.
        budget: the number that was allowed.
        plan: the partial plan; its ``complete`` is False. Of a best-first search the best finished plan found so far,
            its ``complete`` True, or the most probable partial plan where none is finished yet.
        needed: the budget that would do at least, where that is known.
        shared: whether it is the budget of many plans together.
    """

    def __init__(
        self, kind: str, budget: float, plan: Plan, needed: int | None = None, *, shared: bool = False
    ) -> None:
        self.kind = kind
        self.budget = budget
        self.plan = plan
        self.needed = needed
        self.shared = shared
        least = "" if needed is None else f"; at least {needed} are needed"
        if plan.complete:
            found = f"; a plan of {len(plan.word)} terminals is finished (error.plan), there may be a more probable one"
        else:
            found = f" with {len(plan.word)} terminals in the plan"
        amount = f"a cost of {budget:g}" if kind == "cost" else f"{budget} {kind}"
        whose, where = ("shared ", "plan_all(budget=...)") if shared else ("", "walk.budget, or Planner(budget=...)")
        super().__init__(f"the {whose}budget of {amount} is used up{found}{least}; raise it ({where}) to go on")


class WalkError(PlanningError):
    """A walk was asked for what it cannot do now: an answer without a question, a plan that is not finished."""


class ResultsError(PlanningError):
    """A results file that another run is writing, that belongs to another run, or that is damaged."""


class NoPlanWorked(PlanningError):
    """Plans were made and run, each met a tool that failed, and no plan is left or the budget of replans is used up.

    Attributes:
        failures: the errors of the tools, in the order in which they came.
        tools: the tools that failed, each once, in that order.
        replans: the budget that is used up; None where no plan is left.
    """

    def __init__(self, failures: Sequence[ToolError], replans: int | None = None) -> None:
        self.failures = tuple(failures)
        self.tools = tuple(dict.fromkeys(error.tool for error in self.failures))
        self.replans = replans
        why = "no other plan is left" if replans is None else f"the budget of {replans} replans is used up"
        last = {error.tool: error.problem for error in self.failures}
        told = "; ".join(f"{tool} {problem}" for tool, problem in last.items())
        super().__init__(f"no plan could be carried out, and {why}: {told}")


class TooManyPlans(PlanningError):
    """A task has more plans than shall be listed.

    Attributes:
        task: the description of the task.
        limit: how many were allowed.
        count: how many there are; infinite where there is no end to them, None where only that there are more is known.
    """

    def __init__(self, task: str, limit: int, count: float | None = None) -> None:
        self.task = task
        self.limit = limit
        self.count = count
        many = "more than that" if count is None else "infinitely many" if count == float("inf") else f"{count:,}"
        super().__init__(
            f"{limit:,} plans may be listed, and the task {task!r} has {many}; raise the limit, or tighten the rules"
        )


class SnapshotError(PlanningError, ValueError):
    """A snapshot that is damaged or was taken from a walk over another automaton."""


class ExecutionError(FormalLLMError):
    """Base of what can go wrong when a plan is executed."""


class ToolkitError(ExecutionError, ValueError):
    """Tools that contradict each other, the grammar or the plan.

    Attributes:
        problems: everything that is wrong, one sentence each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        start = "\n  " if len(self.problems) > 1 else " "
        super().__init__("the tools do not fit:" + start + "\n  ".join(self.problems))


class InputError(ExecutionError, ValueError):
    """An input that cannot be used: missing, too large, damaged, outside its folder, of another kind."""


class ToolError(ExecutionError):
    """A tool that failed while a plan was executed.

    Attributes:
        tool: its name.
        reason: ``"failed"`` (it raised), ``"timeout"``, ``"memory"`` (it used or returned too much) or ``"kind"`` (what
            it returned is not what it says it returns).
        problem: what happened, in words, without the name of the tool.
        position: its place in the word of the plan, from 0; None outside a plan.
        step: the step of the plan, where there is one for it.
        cause: what the tool raised, if it did.
        result: what was computed before (a :class:`~formal_llm.tools.Result`); None outside a plan.
    """

    def __init__(
        self,
        tool: str,
        problem: str,
        *,
        reason: str = "failed",
        position: int | None = None,
        step: Step | None = None,
        cause: BaseException | None = None,
        result: Any = None,
    ) -> None:
        self.tool = tool
        self.problem = problem
        self.reason = reason
        self.position = position
        self.step = step
        self.cause = cause
        self.result = result
        where = f" (step {step.number})" if step is not None else ""
        super().__init__(f"{tool}{where} {problem}")

    def at(self, position: int, step: Step | None) -> ToolError:
        """The same error at a place in a plan."""
        return ToolError(self.tool, self.problem, reason=self.reason, position=position, step=step, cause=self.cause)


class CheckpointError(ExecutionError):
    """The model of a tool cannot be had, or does not fit the tool.

    Attributes:
        tool: the tool, or the tools that share the model, with commas between.
        checkpoint: its name on the hub, or its folder.
        problem: what is wrong.
        remedy: what to do about it.
    """

    def __init__(self, tool: str, checkpoint: str, problem: str, remedy: str) -> None:
        self.tool = tool
        self.checkpoint = checkpoint
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{tool}: the checkpoint {checkpoint!r} {problem}; {remedy}")


class Cancelled(ExecutionError):
    """An execution was cancelled.

    Attributes:
        result: what was computed before (a :class:`~formal_llm.tools.Result`), where it is a single plan's.
    """

    def __init__(self, result: Any = None) -> None:
        self.result = result
        super().__init__("the execution was cancelled")


class RewardError(FormalLLMError, ValueError):
    """A reward that is no finite number, or a cache of rewards that cannot be used.

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
    """Training that cannot begin or go on; what was trained until then is in the last checkpoint."""


class LLMError(FormalLLMError):
    """Base of what can go wrong with the one who answers."""


class UnknownProvider(LLMError, ValueError):
    """A provider string that names no provider.

    Attributes:
        name: the string.
        known: the forms that are understood.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        near = did_you_mean(name.split(":")[0], [form.split(":")[0] for form in known])
        hint = f" Did you mean {near!r}?" if near else ""
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
    """An optional library is not installed; the message says which extra brings it."""


class InvalidAnswer(LLMError):
    """No legal answer came within the retries.

    Attributes:
        problem: what was wrong with the last one.
        transcript: one pair (prompt, what was answered) for each try.
        usage: what the tries cost (a ``TokenUsage``), where it is known.
    """

    def __init__(
        self, problem: str, transcript: Sequence[tuple[str, str]] = (), usage: TokenUsage | None = None
    ) -> None:
        self.problem = problem
        self.transcript = tuple(transcript)
        self.usage = usage
        tries = f" after {len(self.transcript)} tries" if len(self.transcript) > 1 else ""
        super().__init__(f"no valid answer{tries}: {problem}")


class ModelError(LLMError):
    """A local model that cannot be loaded or used; the message says what is wrong with it and what to do."""


class ProviderError(LLMError):
    """The provider failed: no connection, an error status, a refusal.

    Attributes:
        cause: the exception of the provider's SDK, if there was one.
    """

    def __init__(self, message: str, cause: Any = None) -> None:
        self.cause = cause
        super().__init__(message)


class AnswerFileError(LLMError):
    """A file of answers, a cache or a transcript, cannot be used: damaged, of something else, not to be written to.

    Attributes:
        file: the file.
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
    """A transcript has no answer to a question, or all that it has are used.

    Attributes:
        file: the transcript.
        question: the ``Question`` that was asked.
        recorded: how often it is in the transcript.
    """

    def __init__(self, file: str, question: Question, recorded: int) -> None:
        self.file = file
        self.question = question
        self.recorded = recorded
        asked = " ".join(question.prompt.split())
        shown = asked if len(asked) <= 400 else f"{asked[:200]} ... {asked[-200:]}"
        of = f" of walk {question.walk!r}" if question.walk else ""
        if recorded:
            times = "once" if recorded == 1 else f"{recorded} times"
            what = f"this question{of} was recorded {times} and asked more often (a new ReplayLLM begins anew)"
        else:
            what = f"this question{of} was not recorded; rules, wording and task must be those of the recording"
        super().__init__(f"{file}: {what}: {shown!r}")
