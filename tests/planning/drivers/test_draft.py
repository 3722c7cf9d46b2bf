"""Draft and mend: always a word of the language, legal drafts taken as they are, few questions, all of it on record."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import (
    CFG, PDA, Budget, CachedLLM, Limits, Plan, Planner, Prices, RandomLLM, RecordingLLM, ReplayLLM, TaskPack, Walk,
)  # fmt: skip
from formal_llm.errors import BudgetExceeded, NoValidPlan, WritesNoText
from formal_llm.llms import TokenUsage
from formal_llm.llms.generation import Writing
from formal_llm.planning.drivers.draft import Drafting, draft_and_mend
from formal_llm.planning.drivers.driving import give
from formal_llm.planning.drivers.following import _MOST
from formal_llm.planning.walks.events import Answered, Asked, Drafted
from tests import oracles, strategies
from tests.planning.drivers.writers import Drafter
from tests.planning.wandering import CHAIN, SEASONING, TOOLS, keeps

#: Budgets that bound what a random grammar can make of a random answerer.
STEPS = Budget(steps=40, backtracks=100, questions=60)
letters = st.sampled_from(strategies.LETTERS)
drafts = st.one_of(
    st.text(max_size=30),
    st.lists(letters, max_size=8).map(" ".join),
    st.lists(st.one_of(letters, st.text(max_size=4)), max_size=8).map("\n".join),
    st.lists(letters, max_size=6).map(json.dumps),
    st.lists(letters, max_size=6).map(lambda names: "\n".join(f"{n}. **Use {name}**" for n, name in enumerate(names, 1))),
    st.sampled_from(['{"word": 3}', "[", "((((", "a(b(c", "```\na b\n```", "\ufeffa\r\nb\u2028c\x00"]),
)


def a_plan(cfg: CFG, seed: int) -> Plan:
    """A random plan within the steps that these tests allow."""
    try:
        return Planner(cfg, RandomLLM(seed), budget=STEPS).plan("t")
    except (NoValidPlan, BudgetExceeded):
        assume(False)
        raise


def is_word(cfg: CFG, word: tuple[str, ...]) -> bool:
    return cfg.accepts(word) and keeps(cfg, word)


@strategies.examples(150)
@given(
    st.one_of(strategies.limited_grammars(), strategies.tool_grammars()),
    st.lists(drafts, min_size=1, max_size=3),
    st.sampled_from(["on", "off"]),
    st.integers(0, 99),
)
def test_whatever_is_drafted_the_plan_is_a_word(cfg: CFG, texts: list[str], lookahead: str, seed: int) -> None:
    llm = Drafter(texts, seed)
    planner = Planner(cfg, llm, search="draft", lookahead=lookahead, budget=STEPS)  # type: ignore[arg-type]
    try:
        walk = planner.start("t")
        plan = planner.drive(walk)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
        return
    assert is_word(cfg, plan.word)
    used = plan.usage
    assert used.questions == len(llm.asked) and used.drafts == len(llm.prompts) <= Drafting().most
    assert used.requests == used.questions + used.drafts
    if not used.backtracks:  # greedy would have asked at each of these choices
        assert used.questions + used.drafted == len(walk.snapshot()["journal"])  # type: ignore[arg-type]


@strategies.examples(150)
@given(st.one_of(strategies.limited_grammars(), strategies.tool_grammars()), st.integers(0, 999))
def test_a_legal_draft_is_taken_as_it_is(cfg: CFG, seed: int) -> None:
    wanted = a_plan(cfg, seed)
    assume(1 < len(wanted.word) <= 8)
    llm = Drafter([" ".join(wanted.word)])
    plan = Planner(cfg, llm, search="draft", budget=STEPS).plan("t")
    assert plan.word == wanted.word
    assert llm.asked == [] and len(llm.prompts) <= 1
    assert plan.usage.questions == 0 and plan.usage.requests == plan.usage.drafts == len(llm.prompts)


@strategies.examples(60)
@given(strategies.told_grammars(tools=True), st.integers(0, 999), st.sampled_from(["steps", "call", "json", "marked"]))
def test_a_legal_draft_in_any_form_is_taken_with_one_request(cfg: CFG, seed: int, form: str) -> None:
    wanted = a_plan(cfg, seed)
    assume(0 < len(wanted.word) <= 8)
    written = {
        "steps": "\n".join(map(str, wanted.steps)),
        "call": str(wanted.call or wanted),
        "json": wanted.to_json(),
        "marked": "Here is my plan:\n" + "\n".join(f"{n}. {step.text}" for n, step in enumerate(wanted.steps, 1)),
    }[form]
    llm = Drafter([written])
    plan = Planner(cfg, llm, search="draft", budget=STEPS).plan("t")
    assert cfg.accepts(plan.word)
    if form == "json":
        assert plan.word == wanted.word and not llm.asked
