"""Local models as answerers: alone, many together, behind caches and recordings, from threads; and free text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import CFG, Planner, Task
from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.generation import TextLLM
from formal_llm.llms.llm import LLM, BatchLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.recorded.cache import CachedLLM
from formal_llm.llms.recorded.transcript import RecordingLLM, ReplayLLM
from tests import tiny_models
from tests.llms.local import token_by_token

RULES = CFG.from_string('%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"')


@pytest.fixture
def llm(llama: Any, spoken: Callable[..., Any]) -> TransformersLLM:
    return TransformersLLM.of(llama, spoken(), name="tiny")


# -- choices ---------------------------------------------------------------------------------------------------------


def test_an_answer(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    assert isinstance(llm, LLM) and isinstance(llm, BatchLLM) and isinstance(llm, TextLLM)
    asked = token_by_token.question(12)
    answer = llm.choose(asked)
    with torch.no_grad():
        wanted = token_by_token.causal_probabilities(llama, spoken(), asked, "plain")
    assert list(answer.probabilities) == list(range(1, 13))
    assert list(answer.probabilities.values()) == pytest.approx(wanted, abs=1e-5)
    assert answer.number == 1 + max(range(12), key=wanted.__getitem__)
    assert (answer.usage.requests, answer.usage.output_tokens) == (1, 0)
    assert answer.usage.input_tokens == len(spoken()(token_by_token.texts(spoken(), asked, "plain")[0])["input_ids"])


def test_together_as_alone(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    asked = token_by_token.batch((2, 9, 12))
    together = llm.choose_many(asked)
    for one, question in zip(together, asked, strict=True):
        alone = TransformersLLM.of(llama, spoken()).choose(question)
        assert one.numbers == alone.numbers
        assert one.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert llm.choose_many([]) == []


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_a_question_too_long_fails_alone(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(network(kind), spoken(end_after=kind == "bart"))
    asked = token_by_token.batch((2, 9, 12))
    long = Question("restore " * 3_000, ["a", "b"])
    several = Question("restore " * 3_000, ["a", "b"], several=True)
    expected = [answer.numbers for answer in llm.choose_many(asked)]
    outcomes = llm.choose_many([*asked[:5], long, *asked[5:], several])
    failed = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, LLMError)]
    assert failed == [5, 17]
    assert "shorten the wording" in str(outcomes[5])
    assert [outcome.numbers for outcome in outcomes if isinstance(outcome, Answer)] == expected
    with pytest.raises(LLMError, match="shorten the wording"):
        llm.choose(long)


def test_weights_that_are_no_numbers(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    llm = TransformersLLM.of(model, spoken(), packing="on")
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(ModelError, match="probabilities that are no numbers"):
        llm.choose(token_by_token.question(2))


def test_identity(llama: Any, spoken: Callable[..., Any], tmp_path: Path) -> None:
    named = [
        TransformersLLM.of(llama, spoken(chat=True), name="tiny", **settings)
        for settings in ({}, {"style": "plain"}, {"cue": "Choice:"}, {"template_settings": {"thinking": True}})
    ]
    identities = [llm.identity for llm in named]
    assert all(identities.count(identity) == 1 for identity in identities)
    assert identities[0] == TransformersLLM.of(llama, spoken(chat=True), name="tiny", row_tokens=9).identity
    assert repr(named[0]) == "<TransformersLLM tiny>"
    # Two models in memory cannot be told apart, so a cache wants a name.
    unnamed = TransformersLLM.of(llama, spoken())
    assert unnamed.identity is None and repr(unnamed) == "<TransformersLLM in memory>"
    with pytest.raises(ValueError, match="give the cache a name"):
        CachedLLM(unnamed, tmp_path / "cache")


# -- plans -----------------------------------------------------------------------------------------------------------


def test_many_plans_advance_together(llm: TransformersLLM) -> None:
    sizes: list[int] = []
    real = llm.choose_many

    def counted(questions: Any) -> Any:
        sizes.append(len(questions))
        return real(questions)

    llm.choose_many = counted  # type: ignore[method-assign]
    tasks = [Task(f"make it {word} {number}") for word in ("alpha", "beta") for number in range(40)]
    outcomes = Planner(RULES, llm).plan_all(tasks, concurrency=80)
    assert all(RULES.accepts(outcome.plan.word) for outcome in outcomes)
    assert sizes[0] == 80 and len(sizes) <= 4
    for outcome in outcomes[::20]:
        alone = Planner(RULES, llm).plan(outcome.task)
        assert alone.word == outcome.plan.word
        assert alone.probability == pytest.approx(outcome.plan.probability, rel=1e-4)


@pytest.mark.slow
def test_thousands_of_questions_with_little_memory(llama: Any, spoken: Callable[..., Any]) -> None:
    """Texts come and go in the cache of beginnings; the plans are those of a model without one."""
    tasks = [Task(f"make {number} of them {word}") for number in range(200) for word in ("alpha", "beta")]
    found = []
    for cache_bytes in (300_000, 0):
        llm = TransformersLLM.of(llama, spoken(), cache_bytes=cache_bytes)
        planner = Planner(RULES, llm, search="sample", seed=5)
        outcomes = planner.plan_all(tasks, concurrency=200)
        found.append([outcome.plan for outcome in outcomes])
        assert llm.scorer.stats["questions"] > 800
    same = sum(one.word == other.word for one, other in zip(*found, strict=True))
    assert same >= 396  # a draw at the very border of two options may fall to the other side
    for one, other in zip(*found, strict=True):
        if one.word == other.word:
            assert one.probability == pytest.approx(other.probability, rel=1e-3)


def test_behind_a_cache(llm: TransformersLLM, tmp_path: Path) -> None:
    tasks = [f"make it alpha {number % 4}" for number in range(8)]
    with CachedLLM(llm, tmp_path / "answers") as cached:
        assert isinstance(cached, BatchLLM)
        first = Planner(RULES, cached).plan_all(tasks)
        computed = llm.scorer.stats["questions"]
        again = Planner(RULES, cached).plan_all(tasks)
        assert llm.scorer.stats["questions"] == computed
        assert cached.stats.hits >= cached.stats.misses > 0
    assert [outcome.plan.word for outcome in first] == [outcome.plan.word for outcome in again]
    assert [o.plan.probability for o in first] == pytest.approx([o.plan.probability for o in again])


def test_recorded_and_replayed(llm: TransformersLLM, tmp_path: Path) -> None:
    tasks = [f"make it alpha {number}" for number in range(5)]
    with RecordingLLM(llm, tmp_path / "transcript") as recording:
        first = Planner(RULES, recording).plan_all(tasks)
    again = Planner(RULES, ReplayLLM(tmp_path / "transcript")).plan_all(tasks)
    assert [outcome.plan.word for outcome in first] == [outcome.plan.word for outcome in again]
    assert [outcome.plan.usage.input_tokens for outcome in first] == [o.plan.usage.input_tokens for o in again]


def test_threads_share_a_model(llm: TransformersLLM) -> None:
    asked = token_by_token.batch((2, 9, 12))
    expected = [answer.probabilities for answer in llm.choose_many(asked)]
    llm.scorer.forget()
    errors: list[BaseException] = []
    inside: list[int] = []
    real = llm.scorer.log_probabilities

    def alone(questions: Any) -> Any:
        inside.append(1)
        time.sleep(0.001)  # time for another thread to come in, if it can
        assert len(inside) == 1
        try:
            return real(questions)
        finally:
            inside.pop()

    llm.scorer.log_probabilities = alone  # type: ignore[method-assign]

    def work(begin: int) -> None:
        try:
            for place in range(begin, begin + 16):
                answer = llm.choose(asked[place % 16])
                assert answer.probabilities == pytest.approx(expected[place % 16], abs=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(4 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# -- free text -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["llama", "gpt2", "mamba", "chat", "t5"])
def writer(request: pytest.FixtureRequest, network: Callable[..., Any], spoken: Callable[..., Any]) -> TransformersLLM:
    kind = request.param
    tokenizer = spoken(chat=kind == "chat", end_after=kind == "t5")
    packing = "off" if kind == "mamba" else "auto"
    return TransformersLLM.of(network("llama" if kind == "chat" else kind), tokenizer, name=kind, packing=packing)


def test_text_without_temperature_is_the_same_each_time(writer: TransformersLLM) -> None:
    chat = [Message("system", "Be short."), Message("user", "restore the image")]
    written = writer.generate(chat, max_tokens=9)
    assert writer.generate(chat, max_tokens=9) == written
    assert (written.usage.requests, written.usage.input_tokens) == (1, len(writer.renderer.tokens(chat)))
    assert 0 < written.usage.output_tokens <= 9
    assert writer.generate("restore the image", max_tokens=3).usage.output_tokens <= 3


def test_text_is_the_likeliest_at_each_step(llama: Any, llm: TransformersLLM, spoken: Callable[..., Any]) -> None:
    ids = list(llm.renderer.tokens([Message("user", "restore the image")]))
    begin = len(ids)
    with torch.no_grad():
        for _ in range(8):
            ids.append(int(llama(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == spoken().eos_token_id:
                break
    expected = spoken().decode(ids[begin:], skip_special_tokens=True)
    assert llm.generate("restore the image", max_tokens=8).text == expected


def test_text_with_temperature_is_drawn_from_torchs_numbers(writer: TransformersLLM) -> None:
    written = []
    for seed in (1, 1, 2, 3):
        torch.manual_seed(seed)
        written.append(writer.generate("restore", max_tokens=8, temperature=2.0).text)
    assert written[0] == written[1]
    assert len(set(written)) > 1


def test_text_ends_before_a_stop(writer: TransformersLLM) -> None:
    prompts = [f"restore the {thing}" for thing in ("image", "text", "picture", "caption", "film", "song", "1", "2")]
    texts = {prompt: writer.generate(prompt, max_tokens=12).text for prompt in prompts}
    prompt = max(prompts, key=lambda prompt: len(texts[prompt]))
    whole = texts[prompt]
    middle = len(whole) // 2
    stop = whole[middle : middle + 2]
    assert len(stop) == 2
    cut = writer.generate(prompt, max_tokens=12, stop=[stop, "never written"]).text
    assert cut == whole[: whole.find(stop)]


def test_text_ends_where_the_model_ends(spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(tiny_models.causal("gpt2"), spoken())
    room = 2_048 - len(llm.renderer.tokens([Message("user", "image " * 1_000)]))
    longer = "image " * (1_000 + room - 60)
    while 2_048 - len(llm.renderer.tokens([Message("user", longer)])) > 5:
        longer += "image "
    assert llm.generate(longer, max_tokens=50).usage.output_tokens <= 5
    with pytest.raises(LLMError, match="2,048"):
        llm.generate("image " * 3_000)


def test_the_score_of_a_text_is_the_sum_over_its_tokens(
    llm: TransformersLLM, llama: Any, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    before = spoken()("restore the image\nAnswer:")["input_ids"]
    ids = spoken()("restore the image\nAnswer: Colorization, then 12")["input_ids"]
    with torch.no_grad():
        logs = torch.log_softmax(llama(input_ids=torch.tensor([ids])).logits[0].double(), -1)
    wanted = sum(float(logs[place - 1, ids[place]]) for place in range(len(before), len(ids)))
    assert llm.score("restore the image", "Colorization, then 12") == pytest.approx(wanted, abs=1e-4)

    t5 = TransformersLLM.of(network("t5"), spoken(end_after=True))
    with torch.no_grad():
        own = token_by_token.seq2seq_sum(network("t5"), spoken(end_after=True), "restore", "then 12", ends=False)
    assert t5.score("restore", "then 12") == pytest.approx(float(own), abs=1e-4)


def test_scores_and_choices_agree(llm: TransformersLLM) -> None:
    """Of answers of one digit, whose ends are scored too, the distribution follows from the scores."""
    asked = token_by_token.question(9)
    sums = torch.tensor([llm.score(asked.messages, f"{number}\n") for number in range(1, 10)])
    assert list(llm.choose(asked).probabilities.values()) == pytest.approx(torch.softmax(sums, 0).tolist(), abs=1e-4)


def test_texts_that_cannot_be_scored(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="no token"):
        TransformersLLM.of(llama, spoken(chat=True)).score("restore", "")
    with pytest.raises(LLMError, match="the model reads fewer"):
        llm.score("image " * 3_000, "yes")
