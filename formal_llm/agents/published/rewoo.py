"""ReWOO (Xu et al. 2023, arXiv 2305.18323): all actions are planned first, workers carry them out, a solver answers.

An input refers to an earlier result by its label: ``#E1``. ``#E10`` is another label. What refers to nothing that is
still to come can be carried out at once, so the workers go level by level; tools whose results depend on the order of
calls (a lookup on the page that was found last) are called in the order of the plan, the others of a level together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from formal_llm.agents.actions import Action
from formal_llm.agents.decoding.steps import Asks
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.running import Run
from formal_llm.llms.schemas import closed
from formal_llm.llms.text_request import ToolOffer

#: The worker that is the model itself: its input is a request, without tools.
LLM_WORKER = "LLM"
#: The name of its argument.
REQUEST = "request"
#: How it is described, and offered to models that call tools natively.
DESCRIBED_WORKER = f"{LLM_WORKER}({REQUEST}): Answers a request by itself, without tools."
OFFERED_WORKER = ToolOffer(
    LLM_WORKER, "Answers a request by itself, without tools.", closed({REQUEST: {"type": "string"}})
)
_LABEL = re.compile(r"#E[0-9]+(?![0-9A-Za-z_])")

SOLUTION = """Answer a question with the help of a plan that was carried out. Evidence may be wrong or beside the point.

Question: {question}

{evidence}

Write the answer alone, as short as it can be: a name, a number, a few words."""


def find_references(text: str) -> tuple[str, ...]:
    """The labels to which a text refers, each once."""
    return tuple(dict.fromkeys(_LABEL.findall(text)))


def filled(text: str, evidence: dict[str, str]) -> str:
    """A text with the evidence in the place of labels; those without evidence stay. JSON stays JSON."""

    def fill(value: object) -> object:
        if isinstance(value, dict):
            return {key: fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        return filled(value, evidence) if isinstance(value, str) else value

    data = _read_json_object(text)
    if data is not None:
        return json.dumps(fill(data), ensure_ascii=False)
    return _LABEL.sub(lambda match: evidence.get(match[0], match[0]), text)


def _read_json_object(text: str) -> dict[str, object] | None:
    try:
        data = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _read_request(text: str) -> str:
    """The request to the worker that is the model: a text, or the only argument of a native call."""
    data = _read_json_object(text)
    return str(data[REQUEST]) if data is not None and set(data) == {REQUEST} else text


def levels(actions: Sequence[Action]) -> list[list[int]]:
    """Which actions can be carried out at once: the places of those of each level, in the order of the plan.

    A label stands for the action that has it and comes before; what refers to no such action is in the first level.
    """
    level: list[int] = []
    of_label: dict[str, int] = {}
    for place, action in enumerate(actions):
        level.append(
            1
            + max((level[of_label[label]] for label in find_references(action.input) if label in of_label), default=-1)
        )
        of_label.setdefault(action.label, place)
    return [[place for place, one in enumerate(level) if one == number] for number in range(max(level, default=-1) + 1)]


def solve(run: Run) -> Asks[str]:
    """Carry the plan out, and have the model answer with what it brought."""
    actions = run.list_actions()
    evidence: dict[str, str] = {}
    done: dict[int, ToolCall] = {}
    for level in levels(actions):
        ready = {place: _prepare_action(actions, place, evidence) for place in level}
        asks = {place for place in level if ready[place].tool == LLM_WORKER and not ready[place].refused}
        calls = iter((yield from run.carry_out([ready[place] for place in level if place not in asks])))
        for place in level:
            if place in asks:
                action = ready[place]
                text = yield from run.write(_read_request(action.input))
                done[place] = ToolCall(len(run.segments), action.tool, action.input, text, True, action.label)
            else:
                done[place] = next(calls)
            run.record_call(done[place])
            evidence.setdefault(actions[place].label, done[place].output)
    shown = [
        f"{place}. {action.label} = {action.tool}[{action.input}]\nEvidence: {done[place - 1].output}"
        for place, action in enumerate(actions, 1)
    ]
    return (yield from run.write(SOLUTION.format(question=run.question, evidence="\n\n".join(shown))))


def _prepare_action(actions: Sequence[Action], place: int, evidence: dict[str, str]) -> Action:
    """An action with evidence in its input; refused where its label is taken, or it refers to nothing before it."""
    action = actions[place]
    before = [one.label for one in actions[:place]]
    refused = action.refused
    if not refused and action.label in before:
        refused = f"the label {action.label} is taken by an earlier action"
    unknown = next((label for label in find_references(action.input) if label not in before), None)
    if not refused and unknown is not None:
        known = ", ".join(before) or "none"
        refused = f"{unknown} is the label of no earlier action (labels before this one: {known})"
    return action._replace(input=filled(action.input, evidence), refused=refused)
