"""formal_llm: plans from language models that provably follow the rules people write down.

Write what a valid plan is, as a grammar or an automaton; an LLM plans by answering numbered questions, and every
question offers only the choices from which a valid plan can still be finished.

    >>> from formal_llm import CFG, Planner
    >>> planner = Planner(CFG.from_string("S -> wash S | dry"), llm="test:first")
"""

#: What type checkers take for true. A hook starts for each event of an agent, and to import typing would take half of
#: its time.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from formal_llm.authoring.author import AuthoredRules, aauthor, author
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
        WeightedRules,
        constraint,
        selection,
    )
    from formal_llm.automata.languages.nearest_words import Edit, EditWeights
    from formal_llm.llms import (
        LLM,
        Answer,
        FunctionLLM,
        Option,
        Outlook,
        Prices,
        Question,
        RandomLLM,
        RecordedLLM,
        ScriptedLLM,
        WeightedLLM,
    )
    from formal_llm.planning import Budget, Call, Plan, Planner, Step, Task, TaskPack, Usage, Walk, Wording
    from formal_llm.planning.checking.texts import TextVerification, verify_text
    from formal_llm.planning.checking.verify import Verification, Verifier, verify
    from formal_llm.planning.drivers.solving import Solution
    from formal_llm.planning.reading import read_plan_text
    from formal_llm.tools.executor import Executor
    from formal_llm.tools.tool import tool
    from formal_llm.tools.toolkit import Toolkit

#: For each module the names that it defines.
_HOMES = {
    "authoring.author": "AuthoredRules aauthor author",
    "automata": (
        "CFG PDA Automaton Behaviour BehaviourState FlowEdge FlowNode Flowchart Formula Limits Lookahead "
        "Production Source SumLimit Symbol Transition Verdict WeightedRules constraint selection"
    ),
    "automata.languages.nearest_words": "Edit EditWeights",
    "llms": "LLM Answer FunctionLLM Option Outlook Prices Question RandomLLM RecordedLLM ScriptedLLM WeightedLLM",
    "planning": "Budget Call Plan Planner Step Task TaskPack Usage Walk Wording",
    "planning.checking.texts": "TextVerification verify_text",
    "planning.checking.verify": "Verification Verifier verify",
    "planning.drivers.solving": "Solution",
    "planning.reading": "read_plan_text",
    "tools.executor": "Executor",
    "tools.tool": "tool",
    "tools.toolkit": "Toolkit",
}

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The exported names, imported when they are first used, and :mod:`formal_llm.errors`."""
    from importlib import import_module

    if name == "errors":
        return import_module("formal_llm.errors")
    return import_module("formal_llm.exports").export_lazily(__name__, _HOMES)(name)


__all__ = [
    "CFG", "LLM", "PDA", "Answer", "AuthoredRules", "Automaton",
    "Behaviour", "BehaviourState", "Budget", "Call", "Edit", "EditWeights", "Executor", "FlowEdge",
    "FlowNode", "Flowchart", "Formula", "FunctionLLM", "Limits", "Lookahead", "Option", "Outlook", "Plan",
    "Planner", "Prices", "Production", "Question", "RandomLLM", "RecordedLLM", "ScriptedLLM",
    "Solution", "Source", "Step", "SumLimit", "Symbol", "Task", "TaskPack", "TextVerification", "Toolkit",
    "Transition", "Usage", "Verdict", "Verification", "Verifier", "Walk", "WeightedLLM", "WeightedRules", "Wording",
    "aauthor", "author", "constraint", "read_plan_text", "selection", "tool", "verify", "verify_text",
]  # fmt: skip
