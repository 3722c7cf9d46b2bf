"""Plans that anybody wrote, read back: lines, nested calls, JSON, flowcharts, and what cannot be read."""

import pytest

from formal_llm import (
    CFG,
    PDA,
    Flowchart,
    Plan,
    Planner,
    RandomLLM,
    TaskPack,
    Verifier,
    Wording,
    read_plan_text,
    verify,
)
from formal_llm.errors import NotationError
from formal_llm.planning.reading.reader import find_names
from tests.planning.rules import DAY, under

REFUND = Flowchart.from_mermaid(
    """flowchart TD
    start([A customer wants money back]) --> paid{Is the invoice paid?}
    paid -->|yes| check[Check the account]
    paid -->|no| refuse([Refuse.])
    check --> old{Older than 30 days?}
    old -->|yes| refuse2[Refuse.] --> tell
    old -->|no| pay[Pay back] --> tell[Tell the customer]
    """
).pda()


@pytest.fixture(scope="module")
def pack():
    return TaskPack.load("openagi")


@pytest.mark.parametrize(
    "text",
    [
        "eat\nwash_up\nsleep",
        "eat wash_up sleep",
        "Step 1: Use Eat\nStep 2: Use Wash up\n\nStep 3: Use sleep",
        "1. Eat.\n2) wash  UP\n3: use sleep",
        "- eat\n- Wash up\n- sleep\n",
        '["eat", "Wash up", "sleep"]',
        '{"word": ["eat", "wash_up", "sleep"]}',
    ],
)
def test_flat_forms(text):
    assert read_plan_text(text, DAY, order="forward") == ("eat", "wash_up", "sleep")


def test_nested_forms(pack):
    steps = "1. Image Denoising on the input image\n2. Image captioning on the output of step 1."
    word = ("captioning", "denoising", "input_image")
    assert read_plan_text(steps, pack.cfg) == word
    assert read_plan_text("text = captioning(denoising(input_image))", pack.cfg) == word
    two = steps + "\n3. Visual Question Answering on the input image and the result of step 2"
    assert read_plan_text(two, pack.cfg) == ("visual_question_answering", "input_image", *word)


def test_json_of_a_plan(pack):
    plan = Planner(pack.cfg, RandomLLM(3), wording=pack.wording).plan(pack.tasks[3])
    assert read_plan_text(plan.to_json(), pack.cfg) == plan.word == Plan.from_json(plan.to_json()).word


def test_labels_with_on_and_and_in_them():
    cfg = CFG.from_string('S -> a I J\na "Sum on and off"\nI -> x\nJ -> x\nx "salt and pepper"')
    text = "Step 1: Use Sum on and off on salt and pepper and salt and pepper"
    assert read_plan_text(text, cfg) == ("a", "x", "x")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Check the account\nRefuse.\nTell the customer", "paid=yes check old=yes refuse2 tell"),
        ("Step 1: Refuse.", "paid=no refuse"),
        ("Is the invoice paid? no;\nStep 1: Refuse.", "paid=no refuse"),
        ("is the invoice paid: yes\n1. check\n2. Use Pay back\n- tell", "paid=yes check old=no pay tell"),
        ("paid=no refuse", "paid=no refuse"),
        ("check\npay\nrefuse\nTell the customer", "paid=yes check old=no pay refuse tell"),
        ("Tell the customer", "tell"),
        ("", ""),
    ],
)
def test_flowcharts(text, word):
    assert read_plan_text(text, REFUND) == tuple(word.split())


def test_plans_of_flowcharts_are_read_back_and_wrong_ones_told():
    for seed in range(6):
        plan = Planner(REFUND, RandomLLM(seed), wording=Wording(order="forward")).plan("")
        assert read_plan_text(str(plan), REFUND) == plan.word
    found = verify(read_plan_text("Check the account\nTell the customer", REFUND), REFUND)
    assert found.reason == (
        "Tell the customer cannot stand at place 3; Older than 30 days? yes or Older than 30 days? no could stand there"
    )


def test_texts_of_transitions():
    pda = PDA.from_string(
        '%start p\n%accept r\np, a, ε -> q, ε "9:00: Get up"\nq, ε, ε -> s, ε "Wait."\ns, b, ε -> r, ε\nb "Go out"'
    )
    word = ("a", "b")
    assert read_plan_text("Step 1: 9:00: Get up\nStep 2: Wait.\nStep 3: Use Go out", pda) == word
    assert read_plan_text("1) b\n2) wait\n3) 9:00: get up", pda, order="backward") == word
    assert read_plan_text("a b", pda, order="backward") == word


def test_the_daily_plan_as_it_is_printed():
    pack = TaskPack.load("daily")
    plan = pack.planner(RandomLLM(1)).plan(pack.task(""))
    rules = under(pack.source, pack.constraints)
    assert read_plan_text(str(plan), rules, order="backward") == plan.word
    wrong = [*plan.word[:4], "washing"]
    found = Verifier(rules).verify(wrong)
    assert found.constraints == ("the hour after the washing machine is spent at home",)
    assert rules.accepts(found.nearest)


def test_nothing_is_the_empty_word():
    assert read_plan_text(" \n", DAY) == ()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("eat\nWash upp", 2, r"unknown step: Wash upp \(did you mean Wash up\?\)"),
        ("eat wash_up slep", 1, r"unknown step: slep \(did you mean sleep\?\)"),
        ("Step 1: Use quux", 1, "unknown step: quux"),
        ("1. Eat on the result of step 2\n2. sleep", 2, "no plan ends with this step"),
        ("1. Wash up on sleep\n2. Eat\n3. Eat on the result of step 1", 2, "no plan has this step right before step 3"),
        ("{", None, "neither the JSON of a plan nor a list of names"),
        ('{"word": 3}', None, "a plan in JSON is a list of names"),
        ('["quux"]', None, "unknown step: quux"),
    ],
)
def test_what_cannot_be_read(text, line, problem):
    with pytest.raises(NotationError, match=problem) as caught:
        read_plan_text(text, DAY)
    assert caught.value.line == line


def test_a_label_that_two_terminals_share():
    cfg = CFG.from_string('S -> a | b\na "Same"\nb "Same"')
    with pytest.raises(NotationError, match="may be a or b"):
        read_plan_text("Same", cfg)


def test_sharing_does_not_blow_up():
    twice = "{n}. Eat on the result of step {before} and the result of step {before}"
    lines = ["1. sleep", *(twice.format(n=n, before=n - 1) for n in range(2, 60))]
    with pytest.raises(NotationError, match="no plan ends with this step"):
        read_plan_text("\n".join(lines), DAY)


def test_names_by_name_by_label_and_by_answer():
    assert find_names("Wash up.", DAY) == find_names("use wash_up", DAY) == ("wash_up",)
    assert find_names("Is the invoice paid? yes", REFUND) == ("paid=yes",)
    assert find_names("yes", REFUND) == ("paid=yes", "old=yes")
    assert find_names("fly", DAY) == ()
