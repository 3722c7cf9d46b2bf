"""A run of the modular agent as one web page: what was planned, which tools were called, what they gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from formal_llm.agents.modular.run import ModularRun
from formal_llm.agents.page import run_page
from formal_llm.agents.transcript import Segment, Transcript


def modular_page(run: ModularRun, *, error: BaseException | None = None, about: Mapping[str, str] | None = None) -> str:
    """The page of a run; see :func:`~formal_llm.agents.page.run_page`."""
    segments = [Segment("request", run.request, "user")]
    #: Where the uses of tools, and what comes after them, stand among the segments.
    places = []
    steps, at = run.scratchpad.steps, 0
    for decision in run.decisions:
        places.append(len(segments))
        told = "\n".join(filter(None, (decision.thoughts, f"{decision.tool}: {decision.task}")))
        segments.append(Segment("plan", told, "model"))
        before = len(segments)
        while at < len(steps):
            step = steps[at]
            segments.append(Segment(step.tool, step.result, "environment"))
            at += 1
            # Calls inside of a call come before it; one that fails is the last.
            if step.failed or (step.tool, step.task) == (decision.tool, decision.task):
                break
        places += range(before + 1, len(segments))
    used = [place for place, one in enumerate(segments) if one.source == "environment"]
    if run.answer is not None:
        segments.append(Segment("answer", run.answer, "model"))
    calls = [replace(call, position=place) for call, place in zip(run.calls, used, strict=False)]
    places += [len(segments)] * (len(steps) + 1 - len(places))
    corrections = [replace(one, position=places[min(one.position, len(places) - 1)]) for one in run.corrections]
    shown = Transcript("modular", tuple(segments), tuple(corrections), run.transcript.took)
    return run_page(shown, None, calls, error=error, about=about)
