"""Plans of grammars whose productions have texts, printed and read back."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead, Plan, Planner, RandomLLM, TaskPack, read_plan_text, verify
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.models.repetition import Repetition
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.reading import line_chart
from formal_llm.planning.reading.line_grammar import GrammarLines, Renamings
from formal_llm.planning.reading.prose import StepLine
from formal_llm.planning.reading.reader import read_plan
from tests.planning.printing import plan_of
from tests.strategies import examples, told_grammars

UP_TO = 5
ORDERS: tuple[Order, ...] = ("prefix", "forward")
TEA = CFG.from_string("""
    %order prefix
    Tea -> cup Leaves Hot "Pour the water over the leaves"
    Hot -> kettle Water "Boil the water" | Thermos
    Water -> water | rain "Fetch the rain"
    Thermos -> open thermos
    Leaves -> spoon some(black, green, mint) "Measure the leaves"
    mint "fresh mint"
""")


def lines_of(plan: Plan, order: Order) -> list[str]:
    """The lines without their numbers, in this order: a list of steps may be read from the end."""
    lines = [str(step).split(": ", 1)[1] for step in plan.steps]
    return lines if plan.order == order else lines[::-1]


@given(
    told_grammars() | told_grammars(tools=True) | told_grammars(repeats=True) | told_grammars(tools=True, repeats=True),
    st.integers(0, 1000),
    st.sampled_from(ORDERS),
)
@examples(150)
def test_what_is_printed_is_read_back(cfg: CFG, seed: int, order: Order) -> None:
    try:
        word = Lookahead(cfg).sample(random.Random(seed), max_length=UP_TO)
    except Undecided:
        word = None
    assume(word)
    derivation = random.Random(seed).choice(derivations(cfg, word, 5).found)
    plan = plan_of(cfg, derivation, order)
    assume(plan.steps)
    # Several derivations may print so; that of the plan is one of them.
    reading = read_plan(str(plan), cfg.with_order(order))
    assert any(told.pda.accepts(plan.word) for told in reading.candidates)
    assert cfg.accepts(reading.within())


def test_recipes_are_read_back() -> None:
    pack = TaskPack.load("cooking")
    planner = [Planner(pack.cfg, RandomLLM(seed), wording=pack.wording) for seed in range(50)]
    for one in planner:
        plan = one.plan(pack.task(""))
        assert read_plan_text(str(plan), pack.cfg) == plan.word
        assert not read_plan("\n".join(reversed(lines_of(plan, "prefix"))), pack.cfg).candidates


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "Step 1: Fetch the rain\nStep 2: Boil the water\nStep 3: Measure the leaves: black, fresh mint\n"
            "Step 4: Pour the water over the leaves",
            "cup spoon black mint kettle rain",
        ),
        ("1. boil the water: WATER.\n- measure the leaves: mint\nPour the water over the leaves", None),
        ("Open on thermos\nMeasure the leaves: green\nPour the water over the leaves", "cup spoon green open thermos"),
    ],
)
def test_as_people_write_it(text: str, word: str | None) -> None:
    assert read_plan_text(text, TEA) == tuple((word or "cup spoon mint kettle water").split())


def test_results_of_steps_tell_which_is_meant() -> None:
    cfg = CFG.from_string('%order prefix\nS -> join T T | T\nT -> knife x "Cut" | fold U\nU -> x | y')
    text = "Step 1: Cut\nStep 2: Use fold on y\nStep 3: Use join on the result of step {} and the result of step {}"
    assert read_plan_text(text.format(2, 1), cfg) == ("join", "fold", "y", "knife", "x")
    # A prefix plan is printed with its last argument first, so this is none.
    with pytest.raises(NotationError):
        read_plan_text(text.format(1, 2), cfg)


def test_wrong_plans_are_the_terminals_of_their_steps() -> None:
    found = verify(read_plan_text("Boil the water: water\nPour the water over the leaves", TEA), TEA)
    assert found.word == ("cup", "kettle", "water")
    assert found.reason == "kettle cannot stand at place 2; spoon could stand there"
    assert found.nearest is not None and found.distance == 2


@pytest.mark.parametrize(
    ("text", "line", "problem", "expected"),
    [
        ("Wash\nCut\nWash", 3, "no plan has this step right after step 2", ("Pack", "Cut")),
        ("Wash\nPack", 2, "no plan has this step right after step 1", ("Cut",)),
        ("Wash\nCut", 2, "a step is missing after this one", ("Pack", "Cut")),
        ("Cut\nWash\nPack", 1, "no plan begins with this step", ("Wash",)),
        ("Wash\nCutt\nPack", 2, r"unknown step: Cutt \(did you mean Cut\?\)", ()),
    ],
)
def test_the_first_line_that_cannot_follow(text: str, line: int, problem: str, expected: tuple[str, ...]) -> None:
    # The tub is emptied when all is done, so the word is not the terminals of one step after those of the other.
    cfg = CFG.from_string('S -> Cut tub "Wash"\nCut -> knife Rest "Cut"\nRest -> Cut | x "Pack"')
    with pytest.raises(NotationError, match=problem) as caught:
        read_plan_text(text, cfg)
    assert (caught.value.line, caught.value.expected) == (line, expected)


def test_lines_that_are_labels_as_well_are_read_as_such() -> None:
    cfg = CFG.from_string('S -> a b | c T\nT -> a "Go"\na "Go"')
    assert read_plan_text("Go\nb", cfg) == ("a", "b")


@pytest.mark.filterwarnings("ignore:.*can become")
def test_long_plans_and_those_with_too_many_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    long = CFG.from_string('S -> a S "Do a" | b S "Do b" | c')
    lines = ["Do a", "Do b"] * 500
    assert read_plan_text("\n".join([*lines, "Use c"]), long) == (*["a", "b"] * 500, "c")
    many = CFG.from_string('%order prefix\nS -> S S | S T | T | ε\nT -> a "Do"')
    assert read_plan_text("\n".join(["Do"] * 50), many) == ("a",) * 50
    monkeypatch.setattr(line_chart, "_BUDGET", 100_000)
    with pytest.raises(Undecided, match="too many ways"):
        read_plan_text("\n".join(["Do"] * 1000), many)


def test_renamings_lead_to_terminals_selections_repetitions_and_nothing() -> None:
    cfg = CFG.from_string("S -> tool A\nA -> B | some(x, y) | ε\nB -> b | c+ | b c")
    found = Renamings(cfg)
    assert found.list_plain_words("A") == [("x", "y"), (), ("b",)]
    assert found.list_repetitions("A") == [Repetition("c", 1, None)]
    assert found.list_plain_words("b") == [("b",)]
    assert found.list_plain_words("c+") == found.list_repetitions("c+") == []


CFGS = CFG.from_string("%order prefix\nS -> join T T\nT -> cut x | fold y | z")


def retold(*texts: str, order: str = "prefix", strict: bool = False) -> GrammarLines:
    lines = [StepLine(n, n, text, text, n, printed=True) for n, text in enumerate(texts, 1)]
    return GrammarLines(CFGS, lines, order, strict=strict)


PRINTED = ("Use fold on y", "Use cut on x", "Use join on the result of step 2 and the result of step 1")


def test_a_printed_plan_and_its_results() -> None:
    assert [told.sample for told in retold(*PRINTED, strict=True).candidates] == [("join", "cut", "x", "fold", "y")]
    turned = (*PRINTED[:2], "Use join on the result of step 1 and the result of step 2")
    # It is printed with its last argument first, so this is none.
    assert not retold(*turned, strict=True).candidates
    assert not retold(PRINTED[1], PRINTED[0], PRINTED[2], strict=False).candidates[:0]


@pytest.mark.parametrize(
    "texts",
    [
        ("Use fold on y", "Use join on the result of step 1 and the result of step 1"),
        ("Use fold on x", *PRINTED[1:]),
        PRINTED[::-1],
        (*PRINTED[:2], "Use join on the result of step 2 and z"),
        ("Use z", *PRINTED[1:]),  # what is used on nothing is no step
    ],
)
def test_other_lines_are_no_plan(texts: tuple[str, ...]) -> None:
    assert not retold(*texts).candidates
    assert not retold(*texts, strict=True).candidates


def test_what_steps_are_applied_to_may_be_left_out_of_all_of_them_but_not_by_a_machine() -> None:
    assert [told.sample for told in retold("fold", "cut", "join").candidates] == [("join", "cut", "x", "fold", "y")]
    assert not retold("Use fold", "Use cut", "Use join", strict=True).candidates
    assert not retold("join", "cut", "fold").candidates


def test_why_there_is_none() -> None:
    wrong = retold(PRINTED[0], PRINTED[0], "Use join on z and z").explain_failure()
    assert wrong.line is not None
    assert wrong.problem.startswith("no plan")
    assert retold(*PRINTED[:2]).guess_word() is None or not CFGS.accepts(retold(*PRINTED[:2]).guess_word() or ())


def test_a_label_with_on_in_it_is_not_what_a_step_is_applied_to() -> None:
    cfg = CFG.from_string('%order forward\nS -> S A | A "Wash"\nA -> c\nc "rinse on and on"')
    texts = ("Use rinse on and on", "Wash: rinse on and on")
    for order, rows in (("forward", texts), ("prefix", texts[::-1])):
        lines = [StepLine(n, n, text, text, n, printed=True) for n, text in enumerate(rows, 1)]
        assert not GrammarLines(cfg, lines, order, strict=False).candidates
