"""A run of a procedure as one web page: how it ended and why, its calls with what each showed, and its strategy."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from formal_llm.agents.page import STYLE, render_table
from formal_llm.errors import FormalLLMError
from formal_llm.pictures.page import escape_text, html_page
from formal_llm.planning.drivers.strategies import Strategy
from formal_llm.procedures.foreseeing import FollowedRun, follow_run
from formal_llm.procedures.procedure import Procedure
from formal_llm.procedures.record import Call, MadeCall
from formal_llm.procedures.run import ProcedureOutcome

_STYLE = f"""{STYLE}
h1 {{ font-size: 2rem; margin-bottom: 0; }} .done h1 {{ color: var(--model); }} .declined h1 {{ color: var(--bad); }}
.over h1 {{ color: var(--world); }} header pre {{ font-size: 1.15rem; }} li {{ overflow-wrap: anywhere; }}
.call p {{ margin: .2rem 0; }} figure {{ margin: 1rem 0; overflow-x: auto; }} figure pre {{ white-space: pre;
  font: .8rem/1.4 ui-monospace, monospace; color: var(--soft); }} figure strong {{ color: var(--user); }}
"""


def outcome_page(
    procedure: Procedure,
    outcome: ProcedureOutcome,
    *,
    request: str = "",
    known: Collection[str] = (),
    has_model: bool = False,
) -> str:
    """Return the page of a run.

    Args:
        procedure: the procedure.
        outcome: the run.
        request: what the user wanted, in words.
        known: the names of the values that were known from its start.
        has_model: whether a model chose between ways that cost the same.
    """
    known = [name for name in known if name in procedure.names]  # others do not matter
    strategy, followed, problem = None, FollowedRun((), (), 0), "no goal was chosen"
    try:
        if outcome.goal:
            strategy = procedure.strategy(outcome.goal, known, has_model=has_model)
            followed = follow_run(procedure, strategy, outcome, known, has_model=has_model)
    except FormalLLMError as error:
        problem = str(error)
    call = escape_text(str(Call(outcome.goal, outcome.arguments))) if outcome.goal else ""
    result = f"<pre>{_write(outcome.result)}</pre>" if outcome.ending == "done" else ""
    why = "".join(f"<li>{escape_text(str(replace(one, calls=())))}</li>" for one in outcome.why)
    about = {
        "Request": request,
        "Known": ", ".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in outcome.known.items()
        ),
        "Calls": f"{len(outcome.calls):,}",
        "Cost": f"{sum(procedure.tools[made.call.tool].cost for made in outcome.calls):g}",
        "Requests": f"{outcome.usage.requests:,}",
    }
    parts = [
        f'<header class="{outcome.ending.split()[-1]}"><p class="meta">{escape_text(request)}</p>'
        f"<h1>{outcome.ending.capitalize()}</h1><pre>{call}</pre>{result}</header>",
        f"<h2>Why</h2><ul>{why}</ul>",
        "<h2>Calls</h2>", *_render_calls(outcome.calls, followed),
        "<h2>What could have happened <small>the way of this run is marked</small></h2>",
        f"<p>{escape_text(problem)}</p>" if strategy is None else _render_strategy(strategy, followed),
        f"<h2>About this run</h2>{render_table({name: text for name, text in about.items() if text})}",
    ]  # fmt: skip
    return html_page(f"{outcome.ending}: {outcome.goal}"[:80], _STYLE, "\n".join(parts))


def _render_calls(calls: Sequence[MadeCall], followed: FollowedRun) -> list[str]:
    """Render each call with what it showed: that which could be decided when it had returned."""
    shown = defaultdict(list)
    for question, answer, places in followed.answers:
        if places:
            shown[max(places)].append(f"<p>{escape_text(question)}: <strong>{answer}</strong></p>")
    return [
        f'<div class="call"><code>{escape_text(str(made.call))}</code><pre>'
        + (f'<span class="error">failed: {escape_text(made.error)}</span>' if made.error else _write(made.value))
        + f"</pre>{''.join(shown[place])}</div>"
        for place, made in enumerate(calls)
    ] or ["<p>None.</p>"]


def _render_strategy(strategy: Strategy, followed: FollowedRun) -> str:
    """Render a strategy as a tree with the way of a run marked."""
    lines = map(escape_text, strategy.draw(followed.taken).split("\n"))
    marked = (f"<strong>{line}</strong>" if line.endswith("◀") else line for line in lines)
    return f'<figure tabindex="0"><pre>{chr(10).join(marked)}</pre></figure>'


def _write(value: object) -> str:
    return escape_text(json.dumps(value, ensure_ascii=False))
