"""A result as one web page: every step with its inputs, its output and its time.

The page stands alone: images are thumbnails inside it, every text is escaped, nothing is loaded from anywhere, and its
content security policy forbids scripts and addresses even if a kind's own ``show`` should slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from formal_llm.errors import ToolError
from formal_llm.tools.result import Result, StepResult

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; }}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1.05rem; margin: 0; }}
section {{ border: 1px solid #ccc; border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; }}
section.failed {{ border-color: #b00; }} .error {{ color: #b00; }}
.meta {{ color: #666; font-size: .9em; }}
.flow {{ display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }}
figure {{ margin: .5rem 0; max-width: 20rem; }} figcaption, .size {{ color: #666; font-size: .85em; margin: 0; }}
img {{ max-width: 100%; image-rendering: auto; border: 1px solid #eee; }}
.text, pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }}
.arrow {{ align-self: center; font-size: 1.4rem; color: #666; }}
code {{ overflow-wrap: anywhere; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_report(results: Result | Sequence[Result], title: str = "") -> str:
    """The page for a result, or for several.

    Args:
        results: the results.
        title: the heading of the page; the task of the first plan where left out.
    """
    if isinstance(results, Result):
        results = [results]
    title = title or (results[0].plan.task if results else "") or "The execution of a plan"
    parts = [f"<h1>{escape(title)}</h1>"]
    for result in results:
        if result.plan.task and result.plan.task != title:
            parts.append(f"<h2>{escape(result.plan.task)}</h2>")
        parts += _result(result)
    return _PAGE.format(title=escape(title), body="\n".join(parts))


def save_report(path: str | Path, results: Result | Sequence[Result], title: str = "") -> Path:
    """Write :func:`html_report` to a file."""
    path = Path(path)
    path.write_text(html_report(results, title), encoding="utf-8")
    return path


def _result(result: Result) -> list[str]:
    parts = []
    if result.plan.call is not None:
        parts.append(f"<p><code>{escape(str(result.plan.call))}</code></p>")
    told = f"{result.seconds:.3f} s" + (f", cost {result.cost:g}" if result.cost else "")
    parts.append(f'<p class="meta">{told}</p>')
    if result.error is not None:
        parts.append(f'<p class="error">{escape(str(result.error))}</p>')
    numbers = {step.position: step for step in result.plan.steps}
    tools = [step for step in result.steps if step.inputs or step.state not in ("given", "not run")]
    tools.sort(key=lambda step: numbers[step.position].number if step.position in numbers else -step.position)
    for step in tools:
        told_step = numbers.get(step.position)
        parts.append(_step(result, step, str(told_step) if told_step is not None else f"Use {step.label}"))
    if not tools and result.steps:
        parts.append(f'<div class="flow">{_figure(result.steps[0])}</div>')
    return parts


def _step(result: Result, step: StepResult, heading: str) -> str:
    state = {"cached": "known already", "not run": "not run"}.get(step.state, f"{step.seconds:.3f} s")
    if step.tries > 1:
        state += f", {step.tries} tries"
    shown = "".join(_figure(result.steps[position]) for position in step.inputs)
    error = result.error
    if step.state == "failed" and isinstance(error, ToolError):
        output = f'<p class="error">{escape(f"{error.tool} {error.problem}")}</p>'
    elif step.state in ("failed", "not run"):
        output = f'<p class="meta">{step.state}</p>'
    else:
        output = _figure(step)
    return (
        f'<section class="{"failed" if step.state == "failed" else "step"}"><h2>{escape(heading)}</h2>'
        f'<p class="meta">{escape(step.name)}: {state}</p>'
        f'<div class="flow">{shown}<span class="arrow">&#8594;</span>{output}</div></section>'
    )


def _figure(step: StepResult) -> str:
    if step.value is None:
        shown = '<p class="meta">not kept</p>' if step.state in ("given", "executed", "cached") else "<p>&#8709;</p>"
    else:
        try:
            shown = step.value.kind.to_html(step.value.get())
        except Exception as error:  # a picture that cannot be drawn does not cost the report
            shown = f'<p class="error">cannot be shown: {escape(repr(error))}</p>'
    return f"<figure>{shown}<figcaption>{escape(step.label)}</figcaption></figure>"
