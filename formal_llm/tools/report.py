"""A result as one web page: output and inputs, the plan as a diagram, then every step with its output and time.

The page is self-contained: images are embedded thumbnails, every text is escaped, nothing is loaded, and the content
security policy forbids scripts and addresses even if a kind's own ``show`` is faulty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from formal_llm.errors import ToolError
from formal_llm.tools.page import PALETTE, escape_text, html_page
from formal_llm.tools.result import Result, StepResult

_STYLE = (
    f"{PALETTE}"
    """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 0; }
section { border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; }
section.failed { border-color: var(--bad); } .error { color: var(--bad); }
.meta { color: var(--soft); font-size: .9em; }
.result { font-size: 1.6rem; line-height: 1.3; } .result figure { max-width: none; } .result img { width: 32rem; }
.flow { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
figure { margin: .5rem 0; max-width: 20rem; } figcaption, .size { color: var(--soft); font-size: .85rem; margin: 0; }
img { max-width: 100%; image-rendering: auto; border: 1px solid var(--line); }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
.arrow { align-self: center; font-size: 1.4rem; color: var(--soft); }
code { overflow-wrap: anywhere; }
.warning { border-left: 4px solid var(--world); background: var(--box); padding: .5rem .8rem; margin: .5rem 0; }
.plan { overflow-x: auto; padding: .3rem 0; }
.node, .arguments { display: flex; gap: .5rem; }
.node { align-items: center; } .arguments { flex-direction: column; align-items: flex-end; }
.box { border: 1px solid var(--soft); border-radius: 6px; padding: .3rem .6rem; white-space: nowrap; }
.box.given { border-style: dashed; background: none; } .box.failed { border-color: var(--bad); color: var(--bad); }
th { text-align: left; vertical-align: top; padding-right: 1rem; font-weight: 600; white-space: nowrap; }
td { overflow-wrap: anywhere; }
"""
)


#: The maximum number of steps of a plan that is drawn; a larger diagram would be unreadable.
_MOST_BOXES = 60


def html_report(
    results: Result | Sequence[Result],
    title: str = "",
    *,
    about: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """Return the page for one or several results.

    Args:
        results: the results.
        title: the heading of the page; default: the task of the first plan.
        about: further facts for a table: which planner, which tools, when.
        warnings: what a reader must know before the result; displayed at the top.
    """
    if isinstance(results, Result):
        results = [results]
    title = title or (results[0].plan.task if results else "") or "The execution of a plan"
    parts = [f"<h1>{escape_text(title)}</h1>", *(f'<p class="warning">{escape_text(text)}</p>' for text in warnings)]
    for result in results:
        if result.plan.task and result.plan.task != title:
            parts.append(f"<h2>{escape_text(result.plan.task)}</h2>")
        parts += _write_result(result)
    if about:
        rows = (f"<tr><th>{escape_text(name)}</th><td>{escape_text(text)}</td></tr>" for name, text in about.items())
        parts.append(f"<h2>About</h2><table>{''.join(rows)}</table>")
    return html_page(title, _STYLE, "\n".join(parts), images=True)


def save_report(
    path: str | Path,
    results: Result | Sequence[Result],
    title: str = "",
    *,
    about: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> Path:
    """Write the page of :func:`html_report` to a file."""
    path = Path(path)
    path.write_text(html_report(results, title, about=about, warnings=warnings), encoding="utf-8")
    return path


def _write_result(result: Result) -> list[str]:
    """Return the HTML of the output or the error, the inputs, the plan, and its steps."""
    parts = [] if result.error is None else [f'<p class="result error">{escape_text(str(result.error))}</p>']
    input_steps = list({(step.name, step.value): step for step in result.steps if step.state == "given"}.values())
    last = result.last
    if result.error is None and last is not None and last.state != "given":
        parts.append(f'<div class="result">{_show_value(last)}</div>')
        if input_steps:
            parts.append(f'<p class="meta">from</p><div class="flow">{"".join(map(_show_value, input_steps))}</div>')
    if 1 < len(result.steps) <= _MOST_BOXES and result.plan.call is not None:
        parts.append(
            f'<div class="plan" tabindex="0" role="region" aria-label="The plan">{_draw_plan(result.steps)}</div>'
        )
    if result.plan.call is not None:
        parts.append(f"<p><code>{escape_text(str(result.plan.call))}</code></p>")
    figures = f"{result.seconds:.3f} s" + (f", cost {result.cost:g}" if result.cost else "")
    parts.append(f'<p class="meta">{figures}</p>')
    numbers = {step.position: step for step in result.plan.steps}
    tools = [step for step in result.steps if step.inputs or step.state not in ("given", "decided", "not run")]
    tools.sort(key=lambda step: numbers[step.position].number if step.position in numbers else -step.position)
    for step in tools:
        step_number = numbers.get(step.position)
        parts.append(_write_step(result, step, str(step_number) if step_number is not None else f"Use {step.label}"))
    if not tools and result.steps:
        parts.append(f'<div class="flow">{_show_value(result.steps[0])}</div>')
    return parts


def _draw_plan(steps: Sequence[StepResult]) -> str:
    """Draw the plan as boxes: the arguments of a tool are to the left of it, branches that meet are stacked."""
    drawn: dict[int, str] = {}
    for step in reversed(steps):  # the arguments of a step come after it in the word
        kind = step.state if step.state in ("given", "failed") else "tool"
        box = f'<span class="box {kind}">{escape_text(step.label)}</span>'
        taken = "".join(drawn[position] for position in step.inputs)
        if taken:
            box = f'<div class="arguments">{taken}</div><span class="arrow">&#8594;</span>{box}'
        drawn[step.position] = f'<div class="node">{box}</div>'
    return drawn[steps[0].position]


def _write_step(result: Result, step: StepResult, heading: str) -> str:
    state = {"cached": "known already", "not run": "not run"}.get(step.state, f"{step.seconds:.3f} s")
    if step.tries > 1:
        state += f", {step.tries} tries"
    picture = "".join(_show_value(result.steps[position]) for position in step.inputs)
    error = result.error
    if step.state == "failed" and isinstance(error, ToolError):
        output = f'<p class="error">{escape_text(f"{error.tool} {error.problem}")}</p>'
    elif step.state in ("failed", "not run"):
        output = f'<p class="meta">{step.state}</p>'
    else:
        output = _show_value(step)
    return (
        f'<section class="{"failed" if step.state == "failed" else "step"}"><h2>{escape_text(heading)}</h2>'
        f'<p class="meta">{escape_text(step.name)}: {state}</p>'
        f'<div class="flow">{picture}<span class="arrow">&#8594;</span>{output}</div></section>'
    )


def _show_value(step: StepResult) -> str:
    if step.value is None:
        picture = '<p class="meta">not kept</p>' if step.state in ("given", "executed", "cached") else "<p>&#8709;</p>"
    else:
        try:
            picture = step.value.kind.to_html(step.value.get())
        except Exception as error:  # an image that cannot be drawn must not prevent the report
            picture = f'<p class="error">cannot be shown: {escape_text(repr(error))}</p>'
    return f"<figure>{picture}<figcaption>{escape_text(step.label)}</figcaption></figure>"
