"""A guard in the studio: its rules, what is wrong with them, and what it decides about each event of a trace."""

from __future__ import annotations

from formal_llm.errors import FormalLLMError
from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.traces import traces_of
from formal_llm.guard.verifying import TraceReport, describe_event, verify_trace
from formal_llm.studio.parts import Asked, Part, Parts, build_verdict, text_of
from formal_llm.studio.rules import GUARD, NAME, build_problem, problem

#: The most traces of a file that are judged.
_MOST_TRACES = 20


def check_guard(asked: Asked) -> Parts:
    """The problems of a guard's rules, and what each rule means."""
    try:
        rules = _read_guard(asked)
        found = dict.fromkeys(map(str, rules.check()))
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    rows: list[Part] = [{"name": rule.name, "value": rule.says or str(rule.body)} for rule in rules.rule_set.rules]
    yield {"part": "problems", "problems": [build_problem("warning", text) for text in found], "facts": rows}


def judge_trace(asked: Asked) -> Parts:
    """What a guard decides about each event of a trace; a log of a run that is under way is a trace, too."""
    try:
        guard = Guard(_read_guard(asked))
        traces = traces_of(text_of(asked, "plan"))
        for trace in traces[:_MOST_TRACES]:
            yield _describe_report(verify_trace(guard, trace))
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    if (more := len(traces) - _MOST_TRACES) > 0:
        message = f"{more:,} more traces were not judged: formal-llm guard verify judges all"
        yield {"part": "problems", "problems": [build_problem("warning", message)]}


def _read_guard(asked: Asked) -> GuardRules:
    return GuardRules.from_string(text_of(asked, "text"), file=NAME + GUARD)


def _describe_report(report: TraceReport) -> Part:
    trace = report.trace
    found = {(one.place, one.event): one for one in reversed(report.violations)}
    happened = dict.fromkeys(zip(trace.places, map(describe_event, trace.events), strict=True)) | found
    events: list[Part] = [
        {"place": place, "text": text, "action": one.action if one else "", "why": one.reason if one else ""}
        for (place, text), one in happened.items()
    ]
    reason = f"{trace.name}: {'it keeps the rules' if report.valid else 'it breaks rules'}"
    changes = [] if report.valid or report.nearest is None else [str(report.nearest)]
    return build_verdict(report.valid, reason, None) | {"events": [*events], "changes": [*changes]}
