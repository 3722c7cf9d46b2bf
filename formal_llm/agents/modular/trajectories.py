"""Runs as data to train a planner on: one line a decision, a chat and what the planner wrote.

The form is the one that trainers of chat models read (TRL: a data set with ``prompt`` and ``completion``), or plain
chats::

    {"prompt": [{"role": "system", ...}, {"role": "user", ...}], "completion": [{"role": "assistant", ...}], ...}
    {"messages": [{"role": "system", ...}, {"role": "user", ...}, {"role": "assistant", ...}], ...}

A planner that is trained on them sees the same prompts when it plans: ``ModularAgent(planner_llm=trained, ...)``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from formal_llm.agents.modular.run import Decision, ModularRun
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.drivers.json_lines import encode_line, write_atomically

#: How good a run was.
RunReward = Callable[[ModularRun], float]


def decision_rows(
    runs: Iterable[ModularRun],
    *,
    reward: RunReward | None = None,
    least: float | None = None,
    complete: bool = True,
    schema_in_prompt: bool = False,
    chat: bool = False,
) -> Iterator[dict[str, object]]:
    """A row for each decision of the planner.

    Args:
        runs: the runs.
        reward: how good a run was; each of its rows has it as ``reward``.
        least: runs with a smaller reward are left out.
        complete: whether runs that have not ended are left out.
        chat: whether a row is one chat, ``messages``.
        schema_in_prompt: whether the prompt shows the schema, as for a model that writes text and is not held to it.

    Yields:
        ``prompt`` and ``completion``, or ``messages``; ``legal`` (the tools it could choose from), ``tool``, ``run``
        and ``step`` (places, from 0), and ``reward`` where there is one.

    Raises:
        ValueError: ``least`` without a reward.
    """
    if least is not None and reward is None:
        raise ValueError("least is about rewards: say how good a run is, reward=...")
    for place, run in enumerate(runs):
        if complete and not run.complete:
            continue
        score = None if reward is None else float(reward(run))
        if least is not None and score is not None and not score >= least:
            continue
        for step, decision in enumerate(run.decisions):
            prompt = _build_prompt(decision, schema_in_prompt)
            completion = [{"role": "assistant", "content": _normalise_completion(decision)}]
            row: dict[str, object] = {
                **({"messages": [*prompt, *completion]} if chat else {"prompt": prompt, "completion": completion}),
                "legal": list(decision.legal), "tool": decision.tool, "run": place, "step": step,
            }  # fmt: skip
            yield row if score is None else {**row, "reward": score}


def write_decisions(path: str | os.PathLike[str], rows: Iterable[dict[str, object]]) -> int:
    """Write rows to a file of JSON lines, in the place of what is there; returns how many there are."""
    count = 0

    def iter_lines() -> Iterator[bytes]:
        nonlocal count
        for row in rows:
            count += 1
            yield encode_line(row)

    write_atomically(Path(path), iter_lines())
    return count


def _build_prompt(decision: Decision, shown: bool) -> list[dict[str, object]]:
    request = TextRequest(decision.messages, schema=decision.schema)
    messages = request.show_schema().messages if shown else decision.messages
    return [message.to_data() for message in messages]


def _normalise_completion(decision: Decision) -> str:
    """What was written, without blanks that mean nothing: a model is to learn one way of writing it."""
    value: object = json.loads(_strip_fence(decision.completion))
    return json.dumps(value, ensure_ascii=False)


def _strip_fence(text: str) -> str:
    return text[text.index("{") : text.rindex("}") + 1]
