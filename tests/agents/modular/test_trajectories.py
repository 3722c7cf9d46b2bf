"""Runs as data to train a planner on."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from formal_llm.agents.modular import ModularAgent, decision_rows, write_decisions
from formal_llm.agents.modular.run import ModularRun
from formal_llm.llms.doubles import FunctionLLM
from formal_llm.llms.text_request import INSTRUCTION, chat
from tests.agents.modular.doubles import Held, letters


def test_a_planner_that_learned_a_run_by_heart_plans_it_again(tmp_path: Path) -> None:
    agents = [ModularAgent(Held(random.Random(seed), 0), modules=letters(), nesting=0) for seed in range(5)]
    runs = [agent.run(f"request {seed}") for seed, agent in enumerate(agents)]
    file = tmp_path / "decisions.jsonl"
    count = write_decisions(file, decision_rows([*runs, ModularRun("broken off")], reward=lambda run: len(run.word)))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == count == sum(len(run.decisions) for run in runs)
    learned = {json.dumps(row["prompt"]): row["completion"][0]["content"] for row in rows}
    planner = FunctionLLM(
        lambda request: (lambda messages, _: learned[json.dumps([one.to_data() for one in chat(messages)])])(
            request.messages, request.schema
        ),
        can={"object"},
    )
    for run, row in zip(runs, [row for row in rows if row["step"] == 0], strict=True):
        assert row["reward"] == len(run.word) and row["tool"] in row["legal"] and row["run"] == runs.index(run)
        assert ModularAgent(planner, _calls(run), modules=letters(), nesting=0).run(run.request).word == run.word


def _calls(run: ModularRun) -> FunctionLLM:
    """Writes the calls of a run anew."""
    asked = [one.call for one in run.scratchpad.steps]
    left = iter(asked)

    def write(_: object, schema: object) -> dict[str, object]:
        name, _, inside = next(left).partition("(")
        return {"answer" if name == "respond" else "text": json.loads(inside[:-1])}

    return FunctionLLM(lambda request: write(request.messages, request.schema), can={"object"})


def test_which_rows() -> None:
    run = ModularAgent(Held(random.Random(3), 0), modules=letters()).run("x")
    assert list(decision_rows([run], reward=lambda _: 0.5, least=0.6)) == []
    assert "reward" not in next(decision_rows([run]))
    (last,) = next(decision_rows([run], schema_in_prompt=True))["prompt"][-1:]  # type: ignore[index]
    assert INSTRUCTION in last["content"]
    plain, whole = next(decision_rows([run])), next(decision_rows([run], chat=True))
    assert whole["messages"] == [*plain["prompt"], *plain["completion"]] and "prompt" not in whole  # type: ignore[misc]
    with pytest.raises(ValueError, match="reward="):
        list(decision_rows([run], least=0.5))
