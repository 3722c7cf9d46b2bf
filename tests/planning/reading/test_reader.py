"""Plans that anybody wrote, read back: lines, nested calls, JSON, flowcharts, and what cannot be read."""

from __future__ import annotations

import random

import pytest

from formal_llm import (
    CFG,
    PDA,
    Flowchart,
    Limits,
    Plan,
    Planner,
    RandomLLM,
    TaskPack,
    Verifier,
    read_plan_text,
    verify,
)
from formal_llm.automata.languages.word_lists import words as all_words
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.reading import line_chart
from formal_llm.planning.reading.candidates import CandidateWords, has_word
from formal_llm.planning.reading.line_chart import LineChart, LinePart, PartBody, PartWays, drop_dead_bodies
from formal_llm.planning.reading.prose import StepLine
from formal_llm.planning.reading.reader import AutomatonLines, fill_decisions, find_names
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
    assert read_plan_text(text, DAY) == ("eat", "wash_up", "sleep")


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
    cfg = CFG.from_string('%order prefix\nS -> a I J\na "Sum on and off"\nI -> x\nJ -> x\nx "salt and pepper"')
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
        plan = Planner(REFUND, RandomLLM(seed)).plan("")
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
    prefix = PDA.from_string(f"%order prefix\n{pda}")
    assert read_plan_text("1) b\n2) wait\n3) 9:00: get up", prefix) == word
    assert read_plan_text("a b", prefix) == word


def test_the_daily_plan_as_it_is_printed():
    pack = TaskPack.load("daily")
    plan = pack.planner(RandomLLM(1)).plan(pack.task(""))
    rules = under(pack.source, pack.constraints)
    assert read_plan_text(str(plan), rules) == plan.word
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


CHART = Flowchart.from_mermaid(
    """flowchart TD
    begin([Start]) --> a[Ask] --> new{New?}
    new -->|yes| greet[Greet] --> more{More?}
    new -->|no| more
    more -->|yes| a
    more -->|no| bye[Bye]
    """
).pda()
DECISIONS = {"new=yes", "new=no", "more=yes", "more=no"}


def steps_of(word: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(name,) for name in word if name not in DECISIONS]


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_of_a_plan_give_a_word_with_these_steps(seed: int) -> None:
    word = Planner(CHART, RandomLLM(seed)).plan("t").word
    found = fill_decisions(steps_of(word), CHART)
    assert CHART.accepts(found)
    assert steps_of(found) == steps_of(word)
    assert len(found) <= len(word)


def test_limits_are_kept() -> None:
    limited = CHART.with_limits(Limits({"new=no": 0}))
    steps = [("a",), ("greet",), ("bye",)]
    assert fill_decisions(steps, limited) == ("a", "new=yes", "greet", "more=no", "bye")


def test_of_several_that_read_the_same_the_one_that_fits_is_meant() -> None:
    assert fill_decisions([("bye", "a"), ("bye",)], CHART) == ("a", "new=no", "more=no", "bye")


def test_where_no_word_has_the_steps_decisions_are_filled_in_as_far_as_they_go() -> None:
    steps = [("a",), ("greet",), ("greet",), ("bye",)]
    assert fill_decisions(steps, CHART) == ("a", "new=yes", "greet", "greet", "bye")
    rng = random.Random(3)
    for _ in range(20):
        steps = [(rng.choice(["a", "greet", "bye"]),) for _ in range(rng.randrange(5))]
        found = fill_decisions(steps, CHART)
        assert steps_of(found) == steps


def lines(*texts: str) -> list[StepLine]:
    return [StepLine(at, at, text, text) for at, text in enumerate(texts, 1)]


DAYS = PDA.from_string("""
%start 3
%accept 0
{t}, eat, ε -> {t-1}, ε "{t-1}:00: Eat" for t in 1..3
{t}, read, ε -> {t-1}, ε "{t-1}:00: Read" for t in 1..3
""")


def test_the_text_of_a_step_tells_which_one_it_is() -> None:
    day = AutomatonLines(DAYS, lines("0:00: Eat", "1:00: Read", "2:00: Eat"), "prefix", strict=True)
    assert day.candidates.find_word(DAYS, 100) == ("eat", "read", "eat")
    assert not has_word(
        AutomatonLines(DAYS, lines("0:00: Eat", "0:00: Read", "2:00: Eat"), "prefix", strict=True).candidates
    )
    # By name they may be any.
    assert has_word(AutomatonLines(DAYS, lines("eat", "read", "eat"), "prefix", strict=False).candidates)
    with pytest.raises(NotationError, match="unknown step: eat"):
        AutomatonLines(DAYS, lines("eat"), "prefix", strict=True)


@pytest.mark.parametrize(("order", "texts"), [("prefix", "012"), ("forward", "210")])
def test_the_first_line_that_cannot_be_right_as_the_lines_stand(order: str, texts: str) -> None:
    def possible(told: CandidateWords) -> bool:
        return has_word(told)

    first, _, last = texts
    wrong = AutomatonLines(
        DAYS, lines(f"{first}:00: Eat", f"{first}:00: Read", f"{last}:00: Eat"), order, strict=True
    ).explain_failure(possible)
    assert (wrong.line.place, wrong.expected) == (2, ("1:00: Eat", "1:00: Read"))
    short = AutomatonLines(DAYS, lines(f"{first}:00: Eat"), order, strict=True).explain_failure(possible)
    assert short.problem == "a step is missing after this one"


ROOT, OTHER = LinePart("S", 0), LinePart("T", 0)


def body(*items: str | LinePart) -> PartBody:
    return PartBody(items, tuple(item for item in items if isinstance(item, LinePart)))


def some_table(rng: random.Random, lines: int) -> dict[LinePart, PartWays]:
    """A table in which every part ends sooner or later."""

    def bodies(*parts: LinePart) -> list[PartBody]:
        made = [body(*(item for item in ("x", *parts) if rng.random() < 0.6)) for _ in range(rng.randrange(3))]
        return list(dict.fromkeys(made))

    def ways(*parts: LinePart) -> PartWays:
        return PartWays(bodies(*parts), {at: bodies(*parts) for at in range(lines)}, {"go": [body()]})

    return {ROOT: ways(OTHER, OTHER), OTHER: ways()}


def readings(table: dict[LinePart, PartWays], part: LinePart, at: int, lines: int) -> set[tuple[int, tuple[str, ...]]]:
    """All ways to read a part from a line on: the line after it, and its word."""
    found = set()
    begun = [(at, one) for one in table[part].free]
    begun += [(at + 1, one) for one in table[part].on.get(at, ())] if at < lines else []
    for start, one in begun:
        ends = {(start, ())}
        for item in one.items:
            if isinstance(item, str):
                ends = {(end, (*word, item)) for end, word in ends}
            else:
                ends = {(to, word + more) for end, word in ends for to, more in readings(table, item, end, lines)}
        found |= ends
    return found


@pytest.mark.parametrize("seed", range(60))
def test_readings_are_those_of_trying_all(seed: int) -> None:
    rng = random.Random(seed)
    lines = rng.randrange(4)
    table = drop_dead_bodies(some_table(rng, lines))
    chart = LineChart(table, ROOT, lines)
    words = {word for end, word in readings(table, ROOT, 0, lines) if end == lines}
    told = chart.build_candidates()
    found = set() if told is None else set(all_words(told.pda, 3 * lines + 6))
    assert found == words
    # What stands on a line is what the table has for it, so a beginning of the lines is a plan of its own.
    ends = {end for end, _ in readings(table, ROOT, 0, lines)}
    assert chart.longest >= max(ends, default=0)


def test_what_could_come_next_is_told_where_the_lines_go_wrong() -> None:
    table = {
        ROOT: PartWays([], {0: [body(OTHER)]}, {"begin": [body()]}),
        OTHER: PartWays([], {}, {"go on": [body()], "stop": [body()]}),
    }
    chart = LineChart(table, ROOT, 2)
    assert (chart.longest, list(chart.could), chart.build_candidates()) == (1, ["go on", "stop"], None)


def test_parts_that_never_end_are_left_out() -> None:
    table = {ROOT: PartWays([body(ROOT), body("x")]), OTHER: PartWays([body(OTHER)])}
    assert drop_dead_bodies(table) == {ROOT: PartWays([body(ROOT), body("x")]), OTHER: PartWays([])}


def test_too_many_ways_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_chart, "_BUDGET", 1_000)
    table = {ROOT: PartWays([body(ROOT, ROOT)], {at: [body()] for at in range(30)})}
    assert LineChart(table, ROOT, 3).build_candidates() is not None
    with pytest.raises(Undecided, match="too many ways"):
        LineChart(table, ROOT, 30)


def test_the_terminals_between_parts() -> None:
    made = body("x", "y", OTHER, ROOT, "z")
    assert [made.list_terminals_before(passed) for passed in range(4)] == [("x", "y"), (), ("z",), ()]
