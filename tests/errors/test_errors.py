"""Exceptions: their tree, the text that a person reads, the facts that they carry, also to another process."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Budget, Planner, constraint, errors
from formal_llm.agents import Monitor
from formal_llm.errors import (
    BudgetExceeded,
    Cancelled,
    CheckpointError,
    EarlyAnswer,
    ExecutionError,
    FormalLLMError,
    GrammarError,
    InvalidAnswer,
    MissingKey,
    NoPlanWorked,
    NotAllowed,
    NotationError,
    NotAuthored,
    NotRecorded,
    NoValidPlan,
    ProviderError,
    QueryError,
    RecordError,
    ResourceNotFound,
    RewardError,
    ToolError,
    ToolkitError,
    TooManyPlans,
    TrainingError,
    UnknownProvider,
    WritingError,
    did_you_mean,
    unknown,
)
from formal_llm.guard import Decision
from formal_llm.llms import Option, Question

CHAIN = CFG.from_string("S -> wash S | dry")
PLAN = Planner(CHAIN, "test:script=1,2").plan("x")
DECISION = Decision("block", "paid", "The run cannot end yet: paid.", ("approve",), ("approve", "pay"))
QUESTION = Question("word " * 500, (Option(1, "a"), Option(2, "b")), walk="w1")


def test_the_drawn_tree_is_the_tree() -> None:
    """The docstring of ``formal_llm.errors`` names each class behind its base."""
    drawn = re.findall(r"^    (\w+): (.*)$", errors.__doc__ or "", re.MULTILINE)
    bases = {name: base for base, names in drawn for name in names.split(", ")}
    classes = {one for name in errors.__all__ if inspect.isclass(one := getattr(errors, name))}
    real = {one.__name__: one.__bases__[0].__name__ for one in classes if issubclass(one, FormalLLMError)}
    assert bases == {name: base for name, base in real.items() if name != "FormalLLMError"}
    assert not issubclass(RewardError, ExecutionError)  # a reward that fails is never taken for a plan that failed


@given(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=5))
def test_a_suggestion_is_a_known_name(name: str, known: list[str]) -> None:
    assert did_you_mean(name, known) in {*known, None}
    assert did_you_mean(name.upper(), [*known, name]) is not None or name.upper().casefold() != name.casefold()


def test_suggestions() -> None:
    assert did_you_mean("denoisin", ["deblurring", "denoising"]) == "denoising"
    assert did_you_mean("Denoising", ["denoising"]) == "denoising"
    assert did_you_mean("zebra", ["denoising"]) is None
    assert unknown("terminal", "wahs", ["wash", "dry"]) == "unknown terminal: wahs (did you mean wash?)"
    assert unknown("terminal", "zebra", ["wash"]) == "unknown terminal: zebra"


SAID = [
    (
        ResourceNotFound("grammar", "openagy", ["cooking", "openagi"]),
        "no grammar 'openagy'. Did you mean 'openagi'? There are: cooking, openagi.",
    ),
    (RecordError("is damaged", file="a.jsonl", line=3), "a.jsonl:3: is damaged"),
    (RecordError("is damaged", file="a.db"), "a.db: is damaged"),
    (RecordError("the snapshot is damaged"), "the snapshot is damaged"),
    (
        GrammarError(
            "an arrow is missing", file="rules.cfg", line=3, column=3, source_line="S\ta b", expected=["->"],
            suggestion="write: S -> a b",
        ),
        "rules.cfg:3:3: an arrow is missing\n  3 | S a b\n    |   ^\n  expected: ->\n  write: S -> a b",
    ),
    (NotationError("the grammar is empty"), "<string>: the grammar is empty"),
    (NotationError("it is empty", file="a.cfg", line=2), "a.cfg:2: it is empty"),
    (NoValidPlan("these limits clash", limits=["%limit 0 a"], remedy=["c"]), "no valid plan: these limits clash"),
    (
        TooManyPlans("t", 10, 12345),
        "10 plans may be listed, and the task 't' has 12,345; raise the limit, or tighten the rules",
    ),
    (
        QueryError("a trip", [("org", "no city 'Orial' is known", "did you mean Oriel?"), ("days", "no days", None)]),
        "this query cannot be used:\n  no city 'Orial' is known; did you mean Oriel?\n  no days",
    ),
    (
        NoPlanWorked([ToolError("a", "failed"), ToolError("b", "failed"), ToolError("a", "took too long")], replans=3),
        "no plan could be carried out, and the budget of 3 replans is used up: a took too long; b failed",
    ),
    (ToolkitError(["two tools are called a"]), "the tools do not fit: two tools are called a"),
    (ToolkitError(["one", "two"]), "the tools do not fit:\n  one\n  two"),
    (ToolError("wash", "took too long", reason="timeout", position=2), "wash took too long"),
    (
        CheckpointError("a, b", "org/model", "is not there", "give a folder"),
        "a, b: the checkpoint 'org/model' is not there; give a folder",
    ),
    (Cancelled("partly"), "the execution was cancelled"),
    (WritingError("the text of Act is wrong", "Act", "Google", ("Search",)), "the text of Act is wrong"),
    (
        EarlyAnswer(DECISION, 2),
        "the agent answered too early 3 times and was sent back 2 times (most_early=2): The run cannot end yet: paid. "
        "Allowed now: approve. The shortest way on: approve, then pay.",
    ),
    (
        UnknownProvider("opneai:gpt", ("openai:MODEL", "builtin")),
        "'opneai:gpt' names no LLM. Did you mean 'openai:gpt'? Understood: openai:MODEL, builtin.",
    ),
    (
        MissingKey("OpenAI", "OPENAI_API_KEY"),
        "OpenAI needs a key: set the environment variable OPENAI_API_KEY. To plan offline without one, use the llm "
        "'builtin'.",
    ),
    (InvalidAnswer("3 is no option", [("p", "3")]), "no valid answer: 3 is no option"),
    (InvalidAnswer("x", [("p", "3"), ("p", "4")]), "no valid answer after 2 tries: x"),
    (ProviderError("no connection"), "no connection"),
    (NotAuthored([("x", ["one\nmore"])]), "no clean rules in 1 try; what was wrong:\n  1. one"),
    (
        RewardError("is not a finite number", task="wash", word=["a", "b"]),
        "is not a finite number (task: 'wash'; plan: a b)",
    ),
    (RewardError("is empty", task="wash"), "is empty (task: 'wash'; plan: the empty word)"),
    (RewardError("is empty"), "is empty"),
    (TrainingError("no"), "no"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "said"), SAID)
def test_what_is_said_and_that_it_travels_with_its_facts(error: FormalLLMError, said: str) -> None:
    assert str(error) == said
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(other), str(other)) == (type(error), said)
        assert str(vars(other)) == str(vars(error))


def test_what_is_given_as_a_list_is_kept_as_a_tuple() -> None:
    error = NoValidPlan("clash", symbols=["A"], limits=["%limit 0 a"], constraints=["c"], remedy=["c"])
    assert (error.symbols, error.limits, error.constraints, error.remedy) == (("A",), ("%limit 0 a",), ("c",), ("c",))


@given(st.text(alphabet="ab \t→", min_size=1, max_size=30), st.data())
def test_the_caret_stands_under_its_character(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, len(line)))
    shown = str(NotationError("wrong", line=7, column=column, source_line=line)).split("\n")
    assert shown[1][shown[2].index("^")] == line[column - 1].replace("\t", " ")


def test_a_budget_says_what_is_finished_and_how_to_go_on() -> None:
    partial = Planner(CHAIN, "test:script=1,1,1", budget=Budget(questions=2)).start("x")
    while partial.usage.questions < 2 and partial.question is not None:
        partial.answer(partial.question.check(1))
    error = BudgetExceeded("questions", 2, partial.partial, needed=3)
    assert str(error) == (
        "the budget of 2 questions is used up with 2 terminals in the plan; at least 3 are needed; "
        "raise it (walk.budget, or Planner(budget=Budget(questions=...))) to go on"
    )
    shared = str(BudgetExceeded("cost", 0.5, PLAN, shared=True))
    assert "the shared budget of a cost of 0.5" in shared
    assert "a plan of 2 terminals is finished (error.plan)" in shared
    assert "plan_all(budget=Budget(cost=...))" in shared


def test_no_plan_worked_names_each_tool_once() -> None:
    error = NoPlanWorked([ToolError("wash", "failed"), ToolError("dry", "failed"), ToolError("wash", "hung")])
    assert error.tools == ("wash", "dry")
    assert "no other plan is left" in str(error)
    assert "has infinitely many" in str(TooManyPlans("t", 10, math.inf))
    assert "has more than that" in str(TooManyPlans("t", 10))


def test_a_tool_error_gets_its_place_later() -> None:
    cause, step = ValueError("no water"), PLAN.steps[0]
    placed = ToolError("wash", "failed: no water", cause=cause).at(4, step)
    assert str(placed) == f"wash (step {step.number}) failed: no water"
    assert (placed.position, placed.step, placed.cause, placed.reason) == (4, step, cause, "failed")


def test_what_was_refused_travels_with_the_error() -> None:
    monitor = Monitor(constraint("(next ask pay)", ["ask", "pay"]))
    with pytest.raises(NotAllowed, match="pay cannot come now; ask could come next") as caught:
        monitor.after("pay")
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, NotAllowed)
    assert (error.refusal.name, list(error.refusal.allowed)) == ("pay", ["ask"])
    assert str(error) == error.refusal.reason


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("openai", ("openai:MODEL",)), ("openai:", ("openai:MODEL",)), ("openia", ("openai:MODEL",)),
        ("builtin:x", ("builtin",)), ("bultin:x", ("builtin",)), ("test:frist", ("test:first", "test:random")),
        ("tset:first", ("test:first",)), ("quux", ()),
    ],
)  # fmt: skip
def test_a_provider_without_its_model_is_told_the_whole_form(name: str, meant: tuple[str, ...]) -> None:
    error = UnknownProvider(name, ("openai:MODEL", "builtin", "test:first", "test:random"))
    assert error.suggestions == meant
    assert ("Did you mean" in str(error)) == bool(meant)


def test_what_was_not_recorded_is_shown_in_short() -> None:
    once = str(NotRecorded("run.jsonl", QUESTION, 1))
    assert once.startswith("run.jsonl: this question of walk 'w1' was recorded once and asked more often")
    assert len(once) < 700
    assert "was not recorded; rules, wording and task must be those" in str(NotRecorded("run.jsonl", QUESTION, 0))
