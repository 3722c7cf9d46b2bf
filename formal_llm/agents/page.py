"""A run as one web page: its states, the calls of tools, what was corrected, and what it took.

The page stands alone: no script, nothing loaded from anywhere (its content security policy forbids both), light and
dark as the reader's machine is. Every text is escaped: what a model or a tool wrote is shown and never obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from formal_llm.agents.modular.run import ModularRun
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Behaviour
from formal_llm.planning.plans.usage import Usage
from formal_llm.tools.page import PALETTE, escape_text, html_page

#: The style sheet, which the pages of procedures use, too.
STYLE = (
    f"{PALETTE}"
    """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; }
section { border-left: 4px solid var(--line); padding: .2rem .9rem; margin: .9rem 0; }
section.user { border-color: var(--user); } section.model, section.forced { border-color: var(--model); }
section.environment { border-color: var(--world); }
.answer { font-size: 1.5rem; line-height: 1.3; overflow-wrap: anywhere; } .answer small { display: block; }
h2 small, .answer small, .meta { color: var(--soft); font-weight: normal; font-size: .85rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .2rem 0; }
.call { background: var(--box); padding: .4rem .7rem; border-radius: 6px; margin: .4rem 0; }
.correction, .error { color: var(--bad); margin: .4rem 0; }
table { border-collapse: collapse; } th { text-align: left; padding-right: 1.2rem; font-weight: 600; }
th, td { vertical-align: top; } td { overflow-wrap: anywhere; }
@media (max-width: 30rem) { th { padding-right: .5rem; font-size: .75rem; } }
"""
)
_BY = {"user": "asked", "model": "the model", "environment": "the environment", "forced": "the only way on"}


def run_page(
    transcript: Transcript,
    behaviour: Behaviour | None,
    calls: Sequence[ToolCall] = (),
    *,
    error: BaseException | None = None,
    about: Mapping[str, str] | None = None,
) -> str:
    """The page of a run.

    Args:
        transcript: the run.
        behaviour: whose run it is; None where its states are shown by their names.
        calls: the calls of its tools.
        error: why it is not whole.
        about: further rows of the table: who wrote, with which tools.
    """
    title = transcript.segments[0].text if transcript.segments else transcript.agent
    parts = [f"<h1>{escape_text(title[:200])}</h1>"]
    if transcript.answer and error is None:
        answer = escape_text(transcript.answer)
        parts.append(f'<p class="answer"><small>Answer</small> <strong>{answer}</strong></p>')
    corrections = _group_by_position(transcript.corrections)
    made = _group_by_position(calls)
    for place, segment in enumerate(transcript.segments):
        parts.append(_render_segment(segment, behaviour, made.pop(place, ()), corrections.pop(place, ())))
    for left in (*made.values(), *corrections.values()):  # of a run that broke off before the segment was there
        parts += [_render_call(one) if isinstance(one, ToolCall) else _render_correction(one) for one in left]
    if error is not None:
        parts.append(f'<p class="error">{escape_text(str(error))}</p>')
    rows = {
        "Agent": transcript.agent,
        **(about or {}),
        **_list_usage_rows(transcript.usage),
        "Corrections": f"{len(transcript.corrections):,}",
    }
    parts.append(f"<h2>About this run</h2>{render_table(rows)}{_render_state_table(transcript)}")
    return html_page(title[:80], STYLE, "\n".join(parts))


def render_table(rows: Mapping[str, str]) -> str:
    """Render a table of names and texts."""
    inside = (f"<tr><th>{escape_text(name)}</th><td>{escape_text(text)}</td></tr>" for name, text in rows.items())
    return f"<table>{''.join(inside)}</table>"


def _group_by_position(found: Iterable[ToolCall | Correction]) -> dict[int, tuple[ToolCall | Correction, ...]]:
    of = attrgetter("position")
    return {place: tuple(some) for place, some in groupby(sorted(found, key=of), of)}


def _render_segment(
    segment: Segment,
    behaviour: Behaviour | None,
    calls: Iterable[ToolCall | Correction],
    corrections: Iterable[ToolCall | Correction],
) -> str:
    state = behaviour.states.get(segment.state) if behaviour is not None else None
    heading = (state.text if state is not None else "") or segment.state
    inside = "".join(_render_call(one) for one in calls if isinstance(one, ToolCall))
    inside += f"<pre>{escape_text(segment.text)}</pre>" if segment.text else ""
    inside += "".join(_render_correction(one) for one in corrections if isinstance(one, Correction))
    return (
        f'<section class="{segment.source}"><h2>{escape_text(heading)} <small>{_BY[segment.source]}</small></h2>'
        f"{inside}</section>"
    )


def _render_call(call: ToolCall) -> str:
    label = f"{escape_text(call.label)} = " if call.label else ""
    failed = "" if call.ok else ' <span class="error">failed</span>'
    return (
        f'<div class="call"><code>{label}{escape_text(call.tool)}({escape_text(call.input)})</code>{failed}'
        f"<pre>{escape_text(call.output)}</pre></div>"
    )


def _render_correction(correction: Correction) -> str:
    why = f" {escape_text(correction.reason)}" if correction.reason else ""
    return f'<p class="correction">Corrected: {escape_text(str(correction))}.{why}</p>'


def _list_usage_rows(usage: Usage) -> dict[str, str]:
    took = {
        "Questions": f"{usage.questions:,}",
        "Requests": f"{usage.requests:,}",
        "Tokens": f"{usage.input_tokens:,} read, {usage.output_tokens:,} written",
    }
    return took if usage.cost is None else {**took, "Cost": f"{usage.cost:g}"}


def _render_state_table(transcript: Transcript) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("State", "Times", "Corrections", "Requests", "Read", "Written"))
    rows = [
        (name or "between states", one.times, one.corrections, one.usage.requests, one.usage.input_tokens,
         one.usage.output_tokens)
        for name, one in transcript.by_state.items()
    ]  # fmt: skip
    cells = [
        "".join(f"<td>{escape_text(one if isinstance(one, str) else f'{one:,}')}</td>" for one in row) for row in rows
    ]
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def modular_page(run: ModularRun, *, error: BaseException | None = None, about: Mapping[str, str] | None = None) -> str:
    """The page of a run; see :func:`~formal_llm.agents.page.run_page`."""
    segments = [Segment("request", run.request, "user")]
    #: Where the uses of tools, and what comes after them, are among the segments.
    places = []
    steps, at = run.scratchpad.steps, 0
    for decision in run.decisions:
        places.append(len(segments))
        decided = "\n".join(filter(None, (decision.thoughts, f"{decision.tool}: {decision.task}")))
        segments.append(Segment("plan", decided, "model"))
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
