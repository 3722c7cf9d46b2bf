"""formal_llm: plans from language models that provably follow the rules people write down.

Write what a valid plan is, as a grammar or an automaton; an LLM plans by answering numbered questions, and every
question offers only the choices from which a valid plan can still be finished.

    >>> from formal_llm import CFG, Planner
    >>> planner = Planner(CFG.from_string("S -> wash S | dry"), llm="test:first")
"""

import warnings

from formal_llm import errors
from formal_llm.authoring import Authored, aauthor, author
from formal_llm.automata import (
    CFG,
    PDA,
    Automaton,
    Behaviour,
    BehaviourState,
    Flowchart,
    FlowEdge,
    FlowNode,
    Formula,
    Limits,
    Lookahead,
    Production,
    Source,
    SumLimit,
    Symbol,
    Transition,
    Verdict,
    constraint,
    selection,
)
from formal_llm.automata.languages.edits import Edit, EditWeights
from formal_llm.errors import FormalLLMError
from formal_llm.llms import (
    LLM,
    Answer,
    AsyncFunctionLLM,
    AsyncLLM,
    BatchLLM,
    CachedLLM,
    FunctionLLM,
    Option,
    Outlook,
    Prices,
    Question,
    RandomLLM,
    RecordingLLM,
    ReplayLLM,
    ScriptedLLM,
    WeightedLLM,
)
from formal_llm.planning import Budget, Call, Plan, Planner, Step, Task, TaskPack, Usage, Walk, Wording
from formal_llm.planning.checking.texts import TextVerification, verify_text
from formal_llm.planning.checking.verify import Verification, Verifier, verify
from formal_llm.planning.drivers.solving import Solution
from formal_llm.planning.reading.reader import read_plan_text
from formal_llm.tools import Executor, Toolkit, tool

__version__ = "0.1.0"

__all__ = [
    "CFG", "LLM", "PDA", "Answer", "AsyncFunctionLLM", "AsyncLLM", "Authored", "Automaton", "BatchLLM", "Behaviour",
    "BehaviourState", "Budget", "CachedLLM", "Call", "Edit", "EditWeights", "Executor", "FlowEdge", "FlowNode",
    "Flowchart", "Formula", "FunctionLLM", "Limits", "Lookahead", "Option", "Outlook", "Plan", "Planner", "Prices",
    "Production", "Question", "RandomLLM", "RecordingLLM", "ReplayLLM", "ScriptedLLM", "Solution", "Source", "Step",
    "SumLimit", "Symbol", "Task", "TaskPack", "TextVerification", "Toolkit", "Transition", "Usage", "Verdict",
    "Verification", "Verifier", "Walk", "WeightedLLM", "Wording", "aauthor", "author", "constraint", "read_plan_text",
    "selection", "tool", "verify", "verify_text",
]  # fmt: skip


def __getattr__(name: str) -> type[FormalLLMError]:
    """Errors are imported from :mod:`formal_llm.errors`; for one version they can still be had from here, too."""
    error = getattr(errors, name, None) if name in errors.__all__ else None
    if not (isinstance(error, type) and issubclass(error, (FormalLLMError, errors.GrammarWarning))):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"import {name} from formal_llm.errors", DeprecationWarning, stacklevel=2)
    return error  # type: ignore[return-value]  # the one warning is met nowhere but here
