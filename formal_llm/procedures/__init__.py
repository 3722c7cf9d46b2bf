"""Procedures: what must be established before which action, carried out by any model, and not to be talked out of.

:class:`Procedure` is what people write (``.procedure`` files), :func:`run_procedure` carries it out,
:func:`compile_guard_rules` makes rules for the guard of an agent
that exists already, and :func:`check_evidence` checks a run by itself.
"""

from formal_llm.procedures.assessing import Assessment, Assessor, NeedFinding
from formal_llm.procedures.checker import check_evidence
from formal_llm.procedures.evidence import write_evidence
from formal_llm.procedures.guarding import compile_guard_rules
from formal_llm.procedures.procedure import (
    ConditionNeed,
    Fact,
    FactNeed,
    Hole,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
    ToolParameter,
)
from formal_llm.procedures.record import Call, CallHistory, MadeCall
from formal_llm.procedures.run import ProcedureOutcome, ProcedureRun, ValuesRequest
from formal_llm.procedures.running import RunOptions, arun_procedure, run_procedure

__all__ = [
    "Assessment",
    "Assessor",
    "Call",
    "CallHistory",
    "ConditionNeed",
    "Fact",
    "FactNeed",
    "Hole",
    "MadeCall",
    "NeedFinding",
    "NeedGroup",
    "NotNeed",
    "Procedure",
    "ProcedureOutcome",
    "ProcedureRun",
    "ProcedureTool",
    "RunOptions",
    "ToolParameter",
    "ValuesRequest",
    "arun_procedure",
    "check_evidence",
    "compile_guard_rules",
    "run_procedure",
    "write_evidence",
]
