"""Reading plans: the four forms, what is refused, and that what is printed is read back."""

from __future__ import annotations

import json

import pytest

from formal_llm import CFG, Flowchart, Planner, RandomLLM, Verifier, authored, constraint, read_plan_text, verify_text
from formal_llm.cli.sources import load
from formal_llm.errors import NotationError

LAUNDRY = CFG.from_string("Plan -> wash dry fold")
CHART = Flowchart.from_mermaid(
    "flowchart TD\n a[Wash] --> b{Sunny?}\n b -->|yes| c[Dry outside]\n b -->|no| d[Dry inside]"
)
DESK = CFG.from_string("%order prefix\nT -> build P P\nP -> saw wood | glue wood | saw P")
SHIPPED = dict.fromkeys([*authored.names("tasks"), *authored.names("grammars"), *authored.names("agents")])


@pytest.mark.parametrize(
    ("text", "valid"),
    [("wash dry", True), ("wash / dry", True), ("dry / wash", False), ("dry wash", False), ("wash, dry", None),
     ("dry, wash", None)],
)  # fmt: skip
def test_steps_in_one_row_have_one_order(text: str, valid: bool | None) -> None:
    verifier = Verifier(CFG.from_string("Plan -> wash dry"))
    if valid is None:
        with pytest.raises(NotationError, match="unknown step") as caught:
            verify_text(text, verifier)
        assert caught.value.line == 1
    else:
        assert verify_text(text, verifier).valid == valid


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("wash\ndry - never\nfold", 2),
        ("wash\ndry\nfold (skip this one)", 3),
        ("wash // no\ndry\nfold", 1),
        ("wash\ndry\nfold; or better not", 3),
        ("Here is my plan:\nwash\ndry\nfold", 1),
        ("wash\n**dry**\nfold", 2),
        ("wash\ndyr\nfold", 2),
    ],
)
def test_what_is_no_step_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(NotationError) as caught:
        verify_text(text, Verifier(LAUNDRY))
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "wash dry fold",
        "wash\ndry\nfold",
        "1. Wash\n2) use dry\n3: FOLD",
        "- wash\n- [ ] dry\n* fold\n\n",
        "Step 1: Use wash\r\nStep 2: Use dry\r\nStep 3: Use fold",
        '["wash", "dry", "fold"]',
        '{"plan": ["wash", "dry", "fold"]}',
    ],
)
def test_the_forms(text: str) -> None:
    assert read_plan_text(text, LAUNDRY) == ("wash", "dry", "fold")


def test_decisions_of_a_chart_may_be_left_out() -> None:
    verifier = Verifier(CHART)
    assert verify_text("Wash\nDry inside", verifier).valid
    assert verify_text("Wash\nSunny? no\nDry inside", verifier).valid
    assert not verify_text("Wash\nSunny? yes\nDry inside", verifier).valid


GLUE, SAW = "Use glue on wood", "Use saw on wood"
BUILD = "Use build on the result of step {} and the result of step {}"


def test_steps_are_judged_by_the_data_flow_that_they_declare() -> None:
    for first, second in ((GLUE, SAW), (SAW, GLUE)):
        for one, two in ((1, 2), (2, 1)):
            text = f"1. {first}\n2. {second}\n3. {BUILD.format(one, two)}"
            tools = {1: first.split()[1], 2: second.split()[1]}
            assert read_plan_text(text, DESK) == ("build", tools[one], "wood", tools[two], "wood")
    assert not verify_text(
        f"{GLUE}\nUse glue on the result of step 1\n{SAW}\n{BUILD.format(2, 3)}", Verifier(DESK)
    ).valid
    for wrong in (f"{GLUE}\n{SAW}\n{BUILD.format(1, 1)}", f"{BUILD.format(2, 3)}\n{GLUE}\n{SAW}", f"{GLUE}\n{SAW}"):
        with pytest.raises(NotationError, match="result"):
            read_plan_text(wrong, DESK)


def test_steps_in_another_order_than_the_calls_under_rules_about_order_are_refused() -> None:
    rules = DESK & constraint("(eventually glue)", DESK, name="glued")
    assert verify_text(f"{SAW}\n{GLUE}\n{BUILD.format(2, 1)}", Verifier(rules)).valid
    with pytest.raises(NotationError, match="write the plan as nested calls"):
        verify_text(f"{GLUE}\n{SAW}\n{BUILD.format(1, 2)}", Verifier(rules))


def test_brackets_count() -> None:
    assert read_plan_text("build(glue(wood), saw(wood))", DESK) == ("build", "glue", "wood", "saw", "wood")
    assert not verify_text("build(glue(wood, saw(wood)))", Verifier(DESK)).valid


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_printed_is_read_back(name: str) -> None:
    loaded = load(name)
    planner = Planner(loaded.source, RandomLLM(1), wording=loaded.wording, constraints=loaded.constraints)
    plan = planner.plan(loaded.task("117" if name == "openagi" else "")) if loaded.pack else planner.plan("")
    forms = [plan.to_json(), json.dumps(plan.word), json.dumps({"plan": plan.word}), str(plan)]
    for text in [*forms, *([str(plan.call)] if plan.call else [])]:
        found = verify_text(text, Verifier(loaded.whole), repair=False)
        assert found.valid
        assert text == str(plan) or found.word == plan.word
