"""Whole plans from tiny models with random weights: each one keeps the rules."""

import pytest

from formal_llm import CFG, verify
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.agents.decoding.written_plan import PlanWriter, read_vocabulary
from formal_llm.errors import ModelError
from formal_llm.llms.local.model import TransformersLLM
from tests import tiny_models

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
