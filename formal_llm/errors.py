"""Every exception that formal_llm raises on purpose.

Each is here behind its base::

    FormalLLMError: NotationError, AutomatonError, Undecided, InfiniteLanguage, ResourceNotFound, PluginError
    FormalLLMError: RecordError, PlanningError, ExecutionError, AgentError, LLMError, RewardError, TrainingError
    NotationError: GrammarError
    PlanningError: NoValidPlan, BudgetExceeded, RunStopped, WalkError, QueryError, NoPlanWorked, TooManyPlans
    ExecutionError: ToolkitError, InputError, ToolError, CheckpointError, Pending, Cancelled
    AgentError: NotAllowed, EarlyAnswer, WritingError, AgentStopped, AgentPaused
    LLMError: UnknownProvider, MissingKey, MissingDependency, InvalidAnswer, WritesNoText, ProviderError
    LLMError: ModelError, NotRecorded, NotAuthored
    ProviderError: UnreadableResponse

``GrammarWarning`` is the one warning: a grammar that works but probably means something else than its author intended.

An exception carries its facts as attributes; its text is for a person.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

#: What type checkers take for true; what the exceptions carry is defined on the floors above, which import this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from formal_llm.agents.pausing import Waiting
    from formal_llm.agents.refusal import Refusal
    from formal_llm.agents.transcript import Transcript
    from formal_llm.guard.events import Decision as GuardDecision
    from formal_llm.llms.question import Question
    from formal_llm.planning.plans.plan import Plan
    from formal_llm.planning.plans.steps import Step as PlanStep

__all__ = [
    "AgentError", "AgentPaused", "AgentStopped", "AutomatonError", "BudgetExceeded", "Cancelled",
    "CheckpointError", "EarlyAnswer", "ExecutionError", "FormalLLMError", "GrammarError", "GrammarWarning",
    "InfiniteLanguage", "InputError", "InvalidAnswer", "LLMError", "MissingDependency", "MissingKey", "ModelError",
    "NoPlanWorked", "NoValidPlan", "NotAllowed", "NotAuthored", "NotRecorded", "NotationError", "Pending",
    "PlanningError", "PluginError", "ProviderError", "QueryError", "RecordError", "ResourceNotFound", "RewardError",
    "RunStopped", "TooManyPlans", "ToolError", "ToolkitError", "TrainingError", "Undecided", "UnknownProvider",
    "UnreadableResponse", "WalkError", "WritesNoText", "WritingError", "did_you_mean", "unknown",
]  # fmt: skip

#: How many characters of a line an error shows.
_SHOWN = 160


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to ``name``, or None when nothing is near (letter case does not count)."""
    import difflib  # takes longer to load than all of this package; needed only when something is wrong

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest one that is."""
    near = did_you_mean(name, known)
    return f"unknown {what}: {name}" + (f" (did you mean {near}?)" if near else "")


def visible(text: str) -> str:
    r"""Return ``text`` with each character that a terminal would execute as ``\uXXXX``; tabs and line ends stay.

    A label, a task or a server's answer may contain escape sequences that colour, move, rename or overwrite, and signs
    that change the direction of writing, so that a text appears different from what it is. They are displayed in the
    notation of JSON, so printed JSON keeps its meaning.
    """
    import re

    # Control characters except tab and line feed; marks that embed, override or isolate a direction of writing;
    # surrogates, which cannot be encoded.
    executed = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    return re.sub(executed, lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


class FormalLLMError(Exception):
    """Base of all exceptions of this library."""

    def __post_init__(self) -> None:
        """Keep as a tuple what is given as a list."""
        vars(self).update({name: tuple(given) for name, given in vars(self).items() if isinstance(given, list)})

    def __str__(self) -> str:
        problem = getattr(self, "problem", None)
        return super().__str__() if problem is None else str(problem)

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled and copied without their constructors, which take facts and not the text.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


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


@dataclass(eq=False, repr=False)
class PluginError(FormalLLMError):
    """What an installed package offers to this library cannot be used.

    Attributes:
        kind: what it is: ``"provider"``, ``"task pack"``, ``"toolkit"``, ``"notation"`` or ``"estimator"``.
        packages: the packages that offer it, with their versions.
    """

    kind: str
    name: str
    packages: tuple[str, ...]
    problem: str


@dataclass(eq=False, repr=False)
class RecordError(FormalLLMError, ValueError):
    """What was kept of a run cannot be used: it is damaged, in use, or another run's, or it cannot be written.

    It may be a file of answers or results, a journal, a snapshot, a transcript, a trace or the log of a guard.

    Attributes:
        problem: what is wrong, and what to do.
        file: the file; empty where it is about none.
        line: the line, counted from 1; None where it is about no single one.
    """

    problem: str
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.problem}" if self.file else self.problem


# -- rules: their text, what they mean together, what can be found out about them -------------------------------------


@dataclass(eq=False, repr=False)
class GrammarWarning(UserWarning):
    """A grammar, formula or behaviour that can be used, but probably means something else than its author intended.

    Attributes:
        problem: what looks wrong, in one sentence.
        file: the name of the source, or None for a string.
        line, column: the place, counted from 1; None where it is no single place.
    """

    problem: str
    _: KW_ONLY
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f":{self.line}:{self.column}"
        return f"{self.file or '<string>'}{place}: {self.problem}"


@dataclass(eq=False, repr=False)
class NotationError(FormalLLMError, ValueError):
    """A text that does not follow its notation.

    Attributes:
        problem: what is wrong, in one sentence.
        file: the name of the source, or None for a string.
        line, column: the place, counted from 1; None where the trouble is no single place.
        source_line: what is written in that line.
        expected: what could have stood there.
        suggestion: the nearest known name, or another way out.
    """

    problem: str
    _: KW_ONLY
    file: str | None = None
    line: int | None = None
    column: int | None = None
    source_line: str | None = None
    expected: Sequence[str] = ()
    suggestion: str | None = None

    def __str__(self) -> str:
        place = [self.file or "<string>"]
        if self.line is not None:
            place.append(str(self.line))
            if self.column is not None:
                place.append(str(self.column))
        lines = [f"{':'.join(place)}: {self.problem}"]
        if self.source_line is not None:
            number = "" if self.line is None else str(self.line)
            # Tabs are shown as one blank each, so that the caret is under its character.
            shown, at = _cut_window(self.source_line.expandtabs(1), (self.column or 1) - 1)
            lines.append(f"  {number} | {shown}")
            if self.column is not None:
                lines.append(f"  {' ' * len(number)} | {' ' * at}^")
        if self.expected:
            lines.append(f"  expected: {', '.join(self.expected)}")
        if self.suggestion:
            lines.append(f"  {self.suggestion}")
        return "\n".join(lines)


def _cut_window(line: str, at: int) -> tuple[str, int]:
    """What is shown of a line, and where in it its place ``at`` is: of a long line, what stands around it."""
    if len(line) <= _SHOWN:
        return line, at
    begin = max(0, min(at - _SHOWN // 2, len(line) - _SHOWN))
    before, behind = "…" if begin else "", "…" if begin + _SHOWN < len(line) else ""
    return f"{before}{line[begin : begin + _SHOWN]}{behind}", at - begin + len(before)


class GrammarError(NotationError):
    """A grammar that cannot be read, or that describes no language."""


class AutomatonError(FormalLLMError, ValueError):
    """An automaton written in code that contradicts itself (unknown state, symbol never pushed, ...)."""


class Undecided(FormalLLMError):
    """A question about an automaton was not decided within its budget of states."""


class InfiniteLanguage(FormalLLMError):
    """There are infinitely many of what was to be counted; give a bound on the length (``max_length``)."""


# -- making a plan ----------------------------------------------------------------------------------------------------


class PlanningError(FormalLLMError):
    """Base of what can go wrong while a plan is made."""


@dataclass(eq=False, repr=False)
class NoValidPlan(PlanningError):
    """No plan follows all the rules.

    Attributes:
        reason: why, in words.
        symbols: the grammar symbols that cannot be completed, where they are to blame.
        limits: the limits that clash, as they would be written in a grammar file, where they are to blame.
        constraints: the names of the constraints that clash, with each other or with those limits.
        remedy: a smallest set of limits and constraints without which there is a plan; empty where none is known.
    """

    reason: str
    _: KW_ONLY
    symbols: Sequence[str] = ()
    limits: Sequence[str] = ()
    constraints: Sequence[str] = ()
    remedy: Sequence[str] = ()

    def __str__(self) -> str:
        return f"no valid plan: {self.reason}"


class RunStopped(PlanningError):
    """A run of many tasks was stopped before this plan was finished; the same run continues it."""

    def __init__(self) -> None:
        super().__init__("the run was stopped before this plan was finished")


@dataclass(eq=False, repr=False)
class BudgetExceeded(PlanningError):
    """A walk used up one of its budgets. Raise the budget on the walk and it continues from where it is.

    A best-first search does not continue but starts anew; what it has found is in ``plan``.

    Attributes:
        kind: ``"questions"``, ``"steps"``, ``"backtracks"``, ``"requests"``, ``"tokens"`` or ``"cost"``.
        budget: the number that was allowed.
        plan: the partial plan; its ``complete`` is False. Of a best-first search the best finished plan found so far,
            its ``complete`` True, or the most probable partial plan where none is finished yet.
        needed: the budget that would do at least, where that is known.
        shared: whether it is the budget of many plans together.
        decided: False where it was looked for and not found within the search time.
        hard: where options were offered undecided: how many, by which rule it takes long to search, and what to set.
    """

    kind: str
    budget: float
    plan: Plan
    needed: int | None = None
    _: KW_ONLY
    shared: bool = False
    decided: bool = True
    hard: str = ""

    def __str__(self) -> str:
        least = "" if self.decided else "; how many are needed was not found within the search time"
        if self.needed is not None:
            least = f"; at least {self.needed} are needed"
        count = len(self.plan.word)
        if self.plan.complete:
            found = f"; a plan of {count} terminals is finished (error.plan), there may be a more probable one"
        else:
            found = f" with {count} terminals in the plan"
        amount = f"a cost of {self.budget:g}" if self.kind == "cost" else f"{self.budget} {self.kind}"
        wider = f"budget=Budget({self.kind}=...)"
        whose, where = ("shared ", f"plan_all({wider})") if self.shared else ("", f"walk.budget, or Planner({wider})")
        why = f". {self.hard}" if self.hard else ""
        return f"the {whose}budget of {amount} is used up{found}{least}; raise it ({where}) to go on{why}"


class WalkError(PlanningError):
    """A walk was asked for what it cannot do now: an answer without a question, a plan that is not finished."""


@dataclass(eq=False, repr=False)
class NoPlanWorked(PlanningError):
    """Plans were made and run, each met a tool that failed, and no plan is left or the budget of replans is used up.

    Attributes:
        failures: the errors of the tools, in the order in which they came.
        replans: the budget that is used up; None where no plan is left.
    """

    failures: Sequence[ToolError]
    replans: int | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that failed, each once, in that order."""
        return tuple(dict.fromkeys(error.tool for error in self.failures))

    def __str__(self) -> str:
        why = "no other plan is left" if self.replans is None else f"the budget of {self.replans} replans is used up"
        last = {error.tool: error.problem for error in self.failures}
        listed = "; ".join(f"{tool} {problem}" for tool, problem in last.items())
        return f"no plan could be carried out, and {why}: {listed}"


@dataclass(eq=False, repr=False)
class TooManyPlans(PlanningError):
    """A task has more plans than shall be listed.

    Attributes:
        task: the description of the task.
        limit: how many were allowed.
        count: how many there are; infinite where there is no end to them, None where only that there are more is known.
    """

    task: str
    limit: int
    count: float | None = None

    def __str__(self) -> str:
        endless = self.count == float("inf")
        many = "more than that" if self.count is None else "infinitely many" if endless else f"{self.count:,}"
        return (
            f"{self.limit:,} plans may be listed, and the task {self.task!r} has {many}; raise the limit, or tighten "
            f"the rules"
        )


@dataclass(eq=False, repr=False)
class QueryError(PlanningError, ValueError):
    """Wishes in words that contain too little, contradict each other, or name what is not there.

    Attributes:
        text: what was written.
        problems: what is wrong, each with the field that it concerns, and a way out or None.
    """

    text: str
    problems: Sequence[tuple[str, str, str | None]]

    def __str__(self) -> str:
        listed = (f"  {problem}" + (f"; {way_out}" if way_out else "") for _, problem, way_out in self.problems)
        return "\n".join(["this query cannot be used:", *listed])


# -- carrying a plan out ----------------------------------------------------------------------------------------------


class ExecutionError(FormalLLMError):
    """Base of what can go wrong when a plan is executed."""


@dataclass(eq=False, repr=False)
class ToolkitError(ExecutionError, ValueError):
    """Tools that contradict each other, the grammar or the plan.

    Attributes:
        problems: everything that is wrong, one sentence each.
    """

    problems: Sequence[str]

    def __str__(self) -> str:
        start = "\n  " if len(self.problems) > 1 else " "
        return "the tools do not fit:" + start + "\n  ".join(self.problems)


class InputError(ExecutionError, ValueError):
    """An input that cannot be used: missing, too large, damaged, outside its folder, of another kind."""


@dataclass(eq=False, repr=False)
class ToolError(ExecutionError):
    """A tool that failed while a plan was executed.

    Attributes:
        tool: the tool.
        problem: what happened, in words, without the name of the tool.
        reason: ``"failed"`` (it raised), ``"timeout"``, ``"memory"`` (it used or returned too much), ``"kind"`` (what
            it takes or returned is not as declared), ``"late"`` (by its rules), ``"arguments"`` (no model wrote them).
        position: its place in the word of the plan, from 0; None outside a plan.
        step: the step of the plan, where there is one for it.
        cause: what the tool raised, if it did.
        result: what was computed before (a :class:`~formal_llm.tools.Result`); None outside a plan.
    """

    tool: str
    problem: str
    _: KW_ONLY
    reason: str = "failed"
    position: int | None = None
    step: PlanStep | None = None
    cause: BaseException | None = None
    result: Any = None

    def __str__(self) -> str:
        where = f" (step {self.step.number})" if self.step is not None else ""
        return f"{self.tool}{where} {self.problem}"

    def at(self, position: int, step: PlanStep | None) -> ToolError:
        """The same error at a place in a plan."""
        return ToolError(self.tool, self.problem, reason=self.reason, position=position, step=step, cause=self.cause)


@dataclass(eq=False, repr=False)
class CheckpointError(ExecutionError):
    """The model of a tool cannot be had, or does not fit the tool.

    Attributes:
        tool: the tool, or the tools that share the model, with commas between.
        checkpoint: its name on the hub, or its folder.
        remedy: what to do about it.
    """

    tool: str
    checkpoint: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.tool}: the checkpoint {self.checkpoint!r} {self.problem}; {self.remedy}"


@dataclass(eq=False, repr=False)
class Pending(ExecutionError):
    """Raised by a tool of an agent whose result comes later: from a person, or from work that takes long.

    The run then pauses (:class:`AgentPaused`), and is resumed with the result.

    Attributes:
        question: what is waited for, in words.
    """

    question: str

    def __str__(self) -> str:
        return self.question


@dataclass(eq=False, repr=False)
class Cancelled(ExecutionError):
    """An execution was cancelled.

    Attributes:
        result: what was computed before (a :class:`~formal_llm.tools.Result`), where it is a single plan's.
    """

    result: Any = None

    def __str__(self) -> str:
        return "the execution was cancelled"


# -- agents: what they do ---------------------------------------------------------------------------------------------


class AgentError(FormalLLMError):
    """Base of what can go wrong with agents."""


@dataclass(eq=False, repr=False)
class NotAllowed(AgentError):
    """An event after which the rules cannot be kept any more.

    Attributes:
        refusal: the event, the rules to blame, and what is allowed instead.
    """

    refusal: Refusal

    def __str__(self) -> str:
        return self.refusal.reason


@dataclass(eq=False, repr=False)
class EarlyAnswer(AgentError):
    """A guarded agent answered too early once more than it may.

    Attributes:
        decision: why it may not end yet.
        times: how many of its answers were sent back.
    """

    decision: GuardDecision
    times: int

    def __str__(self) -> str:
        return (
            f"the agent answered too early {self.times + 1} times and was sent back {self.times} times "
            f"(most_early={self.times}): {self.decision.message}"
        )


@dataclass(eq=False, repr=False)
class WritingError(AgentError):
    """A model did not get to an end within the bounds of its writer, or nothing can come next.

    Attributes:
        problem: what happened.
        state: the state that was being written; empty where the next one was looked for.
        wrote: what the model wrote last.
        legal: what it could have written.
    """

    problem: str
    state: str = ""
    wrote: str = ""
    legal: Sequence[str] = ()


@dataclass(eq=False, repr=False)
class AgentStopped(AgentError):
    """A run of an agent used up its budget.

    Attributes:
        kind: ``"questions"``, ``"requests"``, ``"tokens"``, ``"cost"`` or ``"steps"``.
        budget: how much was allowed.
        transcript: the run as far as it came.
        shared: whether it is the budget of many runs together.
        run: of a modular agent, all that is known of the run; else None.
    """

    kind: str
    budget: float
    transcript: Transcript
    _: KW_ONLY
    shared: bool = False
    run: Any = None

    def __str__(self) -> str:
        amount = f"a cost of {self.budget:g}" if self.kind == "cost" else f"{self.budget:,} {self.kind}"
        whose = "shared " if self.shared else ""
        what, more = ("steps", "RunBudget") if self.run is not None else ("segments", "Budget")
        return (
            f"the {whose}budget of {amount} is used up after {len(self.transcript)} {what} (error.transcript); raise "
            f"it (budget={more}({self.kind}=...))"
            + (", and with its journal the run goes on where it stands" if self.run is not None else "")
        )


@dataclass(eq=False, repr=False)
class AgentPaused(AgentError):
    """A run of an agent has paused: it was asked to, or it waits for a person or for the result of a tool.

    Attributes:
        state: the state of the run as JSON text, with which an agent of the same behaviour and rules resumes it.
        transcript: the run as far as it came.
        waiting: the calls that it waits for.
    """

    state: str
    transcript: Transcript
    waiting: Sequence[Waiting] = ()

    def __str__(self) -> str:
        needs = {one.id: "an approval" if one.kind == "approval" else one.question for one in self.waiting}
        why = "; ".join(f"{one.tool} ({one.id}) waits for {needs[one.id]}" for one in self.waiting)
        return (
            f"the run has paused after {len(self.transcript)} segments{': ' if why else ''}{why}; resume it: "
            f"agent.resume(error.state)"
        )


# -- language models, and training ------------------------------------------------------------------------------------


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


@dataclass(eq=False, repr=False)
class MissingKey(LLMError):
    """A hosted model was asked for and its key is not set.

    Attributes:
        variable: the environment variable that holds the key.
    """

    provider: str
    variable: str

    def __str__(self) -> str:
        return (
            f"{self.provider} needs a key: set the environment variable {self.variable}. "
            f"To plan offline without one, use the llm 'builtin'."
        )


class MissingDependency(LLMError, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""


@dataclass(eq=False, repr=False)
class InvalidAnswer(LLMError):
    """No legal answer came within the retries.

    Attributes:
        problem: what was wrong with the last one.
        transcript: one pair (prompt, what was answered) for each try.
        usage: what the tries cost (a ``TokenUsage``), where it is known.
    """

    problem: str
    transcript: Sequence[tuple[str, str]] = ()
    usage: Any = None

    def __str__(self) -> str:
        tries = f" after {len(self.transcript)} tries" if len(self.transcript) > 1 else ""
        return f"no valid answer{tries}: {self.problem}"


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


@dataclass(eq=False, repr=False)
class ProviderError(LLMError):
    """The provider failed: no connection, an error status, a refusal.

    Attributes:
        cause: the exception of the provider's SDK, if there was one.
    """

    problem: str
    cause: BaseException | None = None


class UnreadableResponse(ProviderError):
    """What came back from a provider is no answer: a page of HTML, JSON that was cut. The question is asked again."""


@dataclass(eq=False, repr=False)
class NotRecorded(LLMError, LookupError):
    """A file of recorded answers has none to a question, or all that it has are used.

    Attributes:
        file: the file.
        question: the question that was asked.
        recorded: how often it is in the file.
    """

    file: str
    question: Question
    recorded: int

    def __str__(self) -> str:
        asked = " ".join(self.question.prompt.split())
        shown = asked if len(asked) <= 400 else f"{asked[:200]} ... {asked[-200:]}"
        of = f" of walk {self.question.walk!r}" if self.question.walk else ""
        if self.recorded:
            times = "once" if self.recorded == 1 else f"{self.recorded} times"
            what = f"this question{of} was recorded {times} and asked more often (a new RecordedLLM begins anew)"
        else:
            what = f"this question{of} was not recorded; rules, wording and task must be those of the recording"
        return f"{self.file}: {what}: {shown!r}"


@dataclass(eq=False, repr=False)
class NotAuthored(LLMError):
    """A model did not draft rules that are clean within the tries that it had.

    Attributes:
        drafts: what was tried, in order: each draft, as it was written, and what is wrong with it.
    """

    drafts: Sequence[tuple[str, Sequence[str]]]
    usage: Any = None

    def __str__(self) -> str:
        count = len(self.drafts)
        lines = [f"no clean rules in {count} {'try' if count == 1 else 'tries'}; what was wrong:"]
        for number, (_, problems) in enumerate(self.drafts, 1):
            begun = (problem.partition("\n")[0] for problem in problems[:3])
            lines += [f"  {number}. {problem}" for problem in begun]
        return "\n".join(lines)


@dataclass(eq=False, repr=False)
class RewardError(FormalLLMError, ValueError):
    """A reward that is no finite number, or one that raised something.

    It is no :class:`ExecutionError`, so it is never taken for a plan that failed.

    Attributes:
        problem: what is wrong, and what to do.
        task: the description of the task; empty where it is about no plan.
        word: the word of the plan; empty where it is about no plan.
    """

    problem: str
    _: KW_ONLY
    task: str = ""
    word: Sequence[str] = ()

    def __str__(self) -> str:
        if not self.task and not self.word:
            return self.problem
        return f"{self.problem} (task: {self.task!r}; plan: {' '.join(self.word) or 'the empty word'})"


class TrainingError(FormalLLMError):
    """Training that cannot begin or continue; what was trained until then is in the last checkpoint."""
