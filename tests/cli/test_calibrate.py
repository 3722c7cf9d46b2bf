"""``formal-llm calibrate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm import WeightedLLM
from formal_llm.llms import resolve
from formal_llm.llms.calibration import Calibration
from formal_llm.llms.llm import MAKERS
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.scoring import weights
from tests import tiny_models
from tests.cli.inside import runner

run = runner("calibrate")
RULES = "%limit 1\nA -> t A | end\nt -> x | y | z\n"


@pytest.fixture(autouse=True)
def weighted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(MAKERS, "weighted", lambda rest: WeightedLLM(int(rest or 0)))
    monkeypatch.chdir(tmp_path)
    Path("my.cfg").write_text(RULES, encoding="utf-8")
    lines = [json.dumps({"task": f"task {n % 9}", "word": [*"xyz"[n % 3 :], "end"]}) for n in range(12)]
    Path("plans.jsonl").write_text("# good ones\n" + "\n".join(lines) + "\n", encoding="utf-8")


def test_known_plans_of_a_file() -> None:
    code, printed, said = run("my.cfg", "--llm", "weighted:3", "--plans", "plans.jsonl", "--out", "a.json")
    assert code == 0 and "calibration error" in printed and "probability" in printed and "calibrated:a.json" in said
    found = Calibration.load("a.json")
    assert found.llm == "weighted:3" and found.measured_on > 0 and found.fitted_on > 0
    assert f"temperature {found.temperature:.3f}" in printed
    again = run("my.cfg", "--llm", "weighted:3", "--plans", "plans.jsonl", "--json")
    told = json.loads(again[1])
    assert told["temperature"] == found.temperature and sum(b["count"] for b in told["reliability"]["after"]) > 0
    assert run("my.cfg", "--llm", "weighted:3", "--plans", "plans.jsonl", "--seed", "2", "--json")[1] != again[1]


def test_the_pack_whose_tools_are_known() -> None:
    code, printed, _ = run(
        "openagi", "--llm", "weighted:1", "--tasks", "0-9", "--most", "6", "--held-out", "0", "--json"
    )
    assert code == 0
    told = json.loads(printed)
    assert told["error_before"] is None and told["measured_on"] == 0 and told["fitted_on"] > 12
    code, printed, _ = run("openagi", "--llm", "weighted:1", "--tasks", "0-9", "--most", "6", "--held-out", "0")
    assert code == 0 and "nothing was held out" in printed


def test_weights_of_ways_to_score(tmp_path: Path) -> None:
    folder = tiny_models.save(
        tmp_path / "tiny", tiny_models.causal("llama", tiny_models.VOCABULARY), tiny_models.tokenizer()
    )
    name = f"transformers:{folder}?style=plain&scoring=text"
    asked = ("my.cfg", "--llm", name, "--plans", "plans.jsonl", "--mix", "number,text", "--json")
    code, printed, _ = run(*asked)
    found = json.loads(printed)
    assert code == 0 and found["llm"].startswith(f"transformers:{folder}?style=plain&scoring=") and found["measured_on"]
    scoring = weights(found["llm"].rpartition("scoring=")[2])
    assert set(scoring) <= {"number", "text"}
    llm = resolve(found["llm"])
    assert isinstance(llm, TransformersLLM) and llm.scorer.scoring == scoring  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["my.cfg", "--llm", "weighted", "--plans", "plans.jsonl", "--mix", "text"], "models that write", 2),
        (["my.cfg", "--llm", "weighted"], "name a file of them with --plans", 2),
        (["my.cfg", "--llm", "builtin", "--plans", "plans.jsonl"], "tells no probabilities", 3),
        (["my.cfg", "--llm", "weighted", "--plans", "none.jsonl"], "none.jsonl", 2),
        (["my.cfg", "--llm", "weighted", "--plans", "wrong.jsonl"], "line 1", 2),
        (["my.cfg", "--llm", "weighted", "--plans", "key.jsonl"], "wrd", 2),
        (["my.cfg", "--llm", "weighted", "--plans", "one.jsonl"], "at least 2", 2),
        (["my.cfg", "--llm", "weighted", "--plans", "other.jsonl"], "no plan of 'a'", 2),
        (["my.cfg", "--llm", "weighted", "--plans", "plans.jsonl", "--out", "no/a.json"], "no folder", 2),
    ],
)
def test_what_is_wrong_is_told(arguments: list[str], words: str, code: int) -> None:
    Path("wrong.jsonl").write_text("task\n", encoding="utf-8")
    Path("key.jsonl").write_text('{"task": "a", "wrd": ["x"]}\n', encoding="utf-8")
    Path("one.jsonl").write_text('{"task": "a", "word": ["x", "end"]}\n', encoding="utf-8")
    Path("other.jsonl").write_text(
        '{"task": "a", "word": ["x"]}\n{"task": "b", "word": ["x", "end"]}\n', encoding="utf-8"
    )
    found, _, said = run(*arguments)
    assert found == code and words in said.replace("\n", " ")
