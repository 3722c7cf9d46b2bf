"""A run of the modular agent as a web page."""

from __future__ import annotations

import random

from formal_llm.agents.modular import ModularAgent
from formal_llm.agents.modular.page import modular_page
from tests.agents.modular.doubles import Held, letters


def test_every_decision_call_and_correction_is_shown() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        run = ModularAgent(Held(rng, 0.0), modules=letters(rng)).run("<b>What</b>?")
        page = modular_page(run, about={"LLM": "x & y"})
        assert "&lt;b&gt;What" in page and "<b>What" not in page and "x &amp; y" in page
        assert page.count("<h2>plan ") == len(run.decisions)
        assert page.count('class="call"') == len(run.word)
        assert page.count(">failed</span>") == sum(step.failed for step in run.scratchpad.steps)
        assert page.count("Corrected: ") == len(run.corrections)
        assert page.count("<h2>answer ") == 1
    assert "the money is gone" in modular_page(run, error=RuntimeError("the money is gone"))
