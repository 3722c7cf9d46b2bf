"""Whole plans from tiny models with random weights: each one keeps the rules."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from formal_llm import CFG, verify
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.agents.decoding.written_plan import MaskedObjects, PlanWriter, read_vocabulary
from formal_llm.agents.modular import ModularAgent, RunBudget
from formal_llm.agents.modular.agent import resolve_writer
from formal_llm.errors import InvalidAnswer, MissingDependency, ModelError
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.schemas import closed
from tests import tiny_models
from tests.agents.modular.doubles import letters

RULES = CFG.from_string("""%order forward
S -> tool S | hang_up
tool -> wash | wash_hot | dry | iron
%limit 1
wash_hot cost=3
wash cost=2
%limit cost <= 4
%require 1 dry
""")


@pytest.fixture(scope="module")
def models():
    return {
        "bytes": TransformersLLM.of(tiny_models.causal("llama"), tiny_models.tokenizer(chat=True)),
        "pieces": TransformersLLM.of(tiny_models.causal("gpt2"), tiny_models.sentence_pieces()),
        "two parts": TransformersLLM.of(tiny_models.seq2seq("t5"), tiny_models.sentence_pieces(unigram=True)),
    }


@pytest.mark.parametrize("name", ["bytes", "pieces", "two parts"])
@pytest.mark.parametrize("how", [{}, {"temperature": 2.0}, {"beams": 3}, {"max_tokens": 4}])
def test_plans_keep_the_rules(models, name, how):
    written = PlanWriter(models[name], PlanTexts(RULES, separator=", ")).write("Do the laundry.", **how)
    assert verify(written.word, RULES).valid
    assert ", ".join(RULES.label(one) for one in written.word) == written.text
    assert (written.added is None) == ("max_tokens" not in how)
    assert written.text.endswith(written.added or "")
    assert written.usage.requests == 1
    assert 0 < written.usage.output_tokens <= how.get("max_tokens", 99)


def test_one_writer_writes_many_plans(models):
    writer = PlanWriter(models["bytes"], PlanTexts(RULES))
    plans = [writer.write(f"Do the laundry {number}", temperature=3.0) for number in range(4)]
    assert all(RULES.accepts(plan.word) for plan in plans)
    assert writer.write("Do the laundry") == writer.write("Do the laundry")


def test_a_model_without_an_end():
    tokenizer = tiny_models.tokenizer()
    tokenizer.eos_token = None
    model = tiny_models.causal("llama")
    model.generation_config.eos_token_id = None
    with pytest.raises(ModelError, match="no token of this model ends a text"):
        read_vocabulary(TransformersLLM.of(model, tokenizer))


def test_ends_that_the_model_names_besides(models):
    llm = models["bytes"]
    llm.scorer.model.generation_config.eos_token_id = [2, 5]
    assert read_vocabulary(llm).stops == (2, 5)
    llm.scorer.model.generation_config.eos_token_id = 2


TEXT = {"type": "string", "minLength": 1, "maxLength": 6}
CHOICE = closed({"tool": {"enum": ["search", "respond"]}, "sure": {"type": "boolean"}, "why": TEXT})


@pytest.fixture(scope="module")
def llm() -> TransformersLLM:
    return TransformersLLM.of(tiny_models.causal("llama"), tiny_models.tokenizer(chat=True))


def test_a_model_of_noise_is_held_to_the_schema(llm: TransformersLLM) -> None:
    pytest.importorskip("xgrammar")
    writer = resolve_writer(llm)
    assert isinstance(writer, MaskedObjects)
    for temperature in (0.0, 1.0, 5.0):
        made = writer.generate_object("Which tool?", CHOICE, max_tokens=200, temperature=temperature)
        assert 1 <= len(str(made.value["why"])) <= 6
        assert made.value["tool"] in ("search", "respond") and isinstance(made.value["sure"], bool)
        assert made.usage.requests == 1 and made.usage.output_tokens > 0
    with pytest.raises(InvalidAnswer, match="no whole JSON object"):
        writer.generate_object("Which tool?", CHOICE, max_tokens=3)


def test_without_xgrammar_it_is_asked_for_json(llm: TransformersLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.agents.modular.agent.find_spec", lambda _: None)
    assert resolve_writer(llm) is llm
    agent = ModularAgent(llm, modules=letters(), budget=RunBudget(requests=2))
    with pytest.raises(InvalidAnswer, match="after 2 tries: it is no whole JSON object"):
        agent.run("x")


@pytest.mark.skipif(find_spec("xgrammar") is not None, reason="xgrammar is installed")
def test_masks_need_xgrammar(llm: TransformersLLM) -> None:
    with pytest.raises(MissingDependency, match="xgrammar"):
        MaskedObjects(llm)
