"""formal_llm: plans from language models that provably follow the rules people write down.

Write what a valid plan is, as a grammar or an automaton; an LLM plans by answering numbered questions, and every
question offers only the choices from which a valid plan can still be finished.

    >>> from formal_llm import CFG, Planner
    >>> planner = Planner(CFG.from_string("S -> wash S | dry"), llm="test:first")
"""

from formal_llm.automata import (
    CFG,
    PDA,
    Automaton,
    Limits,
    Lookahead,
    Production,
    SumLimit,
    Symbol,
    Transition,
    Verdict,
    selection,
)
from formal_llm.automata.edits import Edit, EditWeights
from formal_llm.errors import (
    AutomatonError,
    BudgetExceeded,
    FormalLLMError,
    GrammarError,
    GrammarWarning,
    InfiniteLanguage,
    InvalidAnswer,
    LLMError,
    MissingDependency,
    MissingKey,
    NotationError,
    NoValidPlan,
    PlanningError,
    ProviderError,
    ResourceNotFound,
    SnapshotError,
    Undecided,
    UnknownProvider,
    WalkError,
)
from formal_llm.llms import LLM, Answer, FunctionLLM, Option, Outlook, Question, RandomLLM, ScriptedLLM, WeightedLLM
from formal_llm.planning import Budget, Call, Plan, Planner, Step, Task, TaskPack, Usage, Walk, Wording
from formal_llm.planning.plan_text import read_plan_text
from formal_llm.planning.verify import Verification, Verifier, verify

__version__ = "0.1.0"

__all__ = [
    "CFG",
    "LLM",
    "PDA",
    "Answer",
    "Automaton",
    "AutomatonError",
    "Budget",
    "BudgetExceeded",
    "Call",
    "Edit",
    "EditWeights",
    "FormalLLMError",
    "FunctionLLM",
    "GrammarError",
    "GrammarWarning",
    "InfiniteLanguage",
    "InvalidAnswer",
    "LLMError",
    "Limits",
    "Lookahead",
    "MissingDependency",
    "MissingKey",
    "NoValidPlan",
    "NotationError",
    "Option",
    "Outlook",
    "Plan",
    "Planner",
    "PlanningError",
    "Production",
    "ProviderError",
    "Question",
    "RandomLLM",
    "ResourceNotFound",
    "ScriptedLLM",
    "SnapshotError",
    "Step",
    "SumLimit",
    "Symbol",
    "Task",
    "TaskPack",
    "Transition",
    "Undecided",
    "UnknownProvider",
    "Usage",
    "Verdict",
    "Verification",
    "Verifier",
    "Walk",
    "WalkError",
    "WeightedLLM",
    "Wording",
    "read_plan_text",
    "selection",
    "verify",
]  # fmt: skip
