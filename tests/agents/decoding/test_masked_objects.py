"""Objects of a schema from a local model, held to it by masks."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from formal_llm.agents.decoding.masked_objects import MaskedObjects
from formal_llm.agents.modular import ModularAgent, RunBudget, Sizes
from formal_llm.agents.modular.agent import resolve_writer
from formal_llm.errors import InvalidAnswer, MissingDependency
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.objects import ask_object
from formal_llm.llms.schemas import closed
from tests import tiny_models
from tests.agents.modular.doubles import letters

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
        made = ask_object(writer, "Which tool?", CHOICE, max_tokens=200, temperature=temperature, tries=1)
        assert 1 <= len(str(made.value["why"])) <= 6
        assert made.value["tool"] in ("search", "respond") and isinstance(made.value["sure"], bool)
        assert made.usage.requests == 1 and made.usage.output_tokens > 0
    with pytest.raises(InvalidAnswer, match="no whole JSON object"):
        ask_object(writer, "Which tool?", CHOICE, max_tokens=3, tries=1)


def test_without_xgrammar_it_is_asked_for_json(llm: TransformersLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.agents.modular.agent.find_spec", lambda _: None)
    assert resolve_writer(llm) is llm
    agent = ModularAgent(llm, modules=letters(), budget=RunBudget(requests=2), sizes=Sizes(max_tokens=200))
    with pytest.raises(InvalidAnswer, match="after 2 tries"):
        agent.run("x")


@pytest.mark.skipif(find_spec("xgrammar") is not None, reason="xgrammar is installed")
def test_masks_need_xgrammar(llm: TransformersLLM) -> None:
    with pytest.raises(MissingDependency, match="xgrammar"):
        MaskedObjects(llm)
