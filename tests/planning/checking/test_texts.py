"""Verdicts on texts: printed plans, and all single-place changes of them, against an oracle that reads nothing."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    PDA,
    Flowchart,
    Limits,
    Planner,
    RandomLLM,
    Verifier,
    authored,
    constraint,
    read_plan_text,
    verify_text,
)
from formal_llm.automata.languages.word_lists import words
from formal_llm.cli.sources import load
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.checking.texts import describe_line_changes, find_remedy
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.planning.plans.printed import StepLine
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.plans.vocabulary import write_word
from tests.planning.printing import changes, is_print_of, plans, printed, read_in, some_run_prints
from tests.strategies import LETTERS, examples, grammars, limited_grammars, told_automata, told_grammars

ORDERS: tuple[Order, ...] = ("prefix", "forward")
LONGEST, SOME, CHANGED = 4, 12, 25
#: Labels with what parts steps, words, calls and data.
ODD = st.text(' ,/abAB"()[]{}:;.-*#?—1ε', min_size=1, max_size=8).filter(str.strip)


def judge(text: str, verifier: Verifier) -> tuple[bool | None, tuple[str, ...]]:
    """The verdict, and the word that it is about; None for a text that is refused."""
    try:
        found = verify_text(text, verifier, repair=False)
    except NotationError as error:
        assert error.line is not None or text[0] in "[{"
        return None, ()
    return found.valid, found.word


def check_all(source: CFG | PDA, order: Order, seed: int) -> None:
    """Printed plans are valid; of what is changed in them, what the oracle prints, and nothing else but names."""
    source = read_in(source, order)
    pda = PDA.from_cfg(source).with_limits(source.limits) if isinstance(source, CFG) else source
    verifier = Verifier(source)
    every = list(islice(plans(pda, order, LONGEST), 200))
    rng = random.Random(seed)
    for plan in rng.sample(every, min(SOME, len(every))):
        for text in (plan.to_json(), json.dumps(plan.word), json.dumps({"plan": plan.word})):
            assert judge(text, verifier) == (True, plan.word), text
        # A name that is the label of another is refused.
        assert judge(write_word(plan.word, order), verifier)[0] is not False, plan.word
    for form in ("steps", "call"):
        known = {printed(plan, form) for plan in every} - {None}
        texts = sorted(text for text in known if text and (form == "call" or text.startswith("Step 1: ")))
        other = sorted({line.split(": ", 1)[1] for text in texts if form == "steps" for line in text.split("\n")})
        rng.shuffle(texts)
        for text in texts[:SOME]:
            assert judge(text, verifier)[0], text
        changed = [new for text in texts[:3] for new in changes(text, other[:4]) if new]  # no text is the empty word
        for new in rng.sample(changed, min(CHANGED, len(changed))):
            valid, word = judge(new, verifier)
            assert valid or new not in known, new
            if not isinstance(source, CFG):
                assert some_run_prints(pda, new, order) in (bool(valid), None), new
            elif valid and new not in known:
                assert is_print_of(new, source, word, order, form) is not False, (new, word)


@given(
    told_grammars() | told_grammars(tools=True) | told_grammars(repeats=True), st.sampled_from(ORDERS),
    st.integers(0, 99), st.dictionaries(st.sampled_from(LETTERS), ODD, max_size=3) | st.just({}),
)  # fmt: skip
@examples(20)
def test_grammars_with_texts(cfg: CFG, order: Order, seed: int, labels: dict[str, str]) -> None:
    with suppress(Undecided):
        check_all(cfg.with_labels({n: label for n, label in labels.items() if n in cfg.terminals}), order, seed)


@given(grammars() | limited_grammars(), st.sampled_from(ORDERS), st.integers(0, 99))
@examples(30)
def test_grammars_without_texts(cfg: CFG, order: Order, seed: int) -> None:
    with suppress(Undecided):
        check_all(cfg, order, seed)


@given(told_automata(), st.sampled_from(ORDERS), st.integers(0, 99))
@examples(40)
def test_automata(pda: PDA, order: Order, seed: int) -> None:
    check_all(pda, order, seed)


@given(grammars() | limited_grammars(), st.integers(0, 99))
@examples(20)
def test_every_edit_of_steps_is_judged_as_the_edited_word(cfg: CFG, seed: int) -> None:
    """A step dropped, doubled, swapped, or replaced by any other."""
    cfg = cfg.with_order("forward")
    verifier, rng = Verifier(cfg), random.Random(seed)
    language = set(islice(words(cfg, LONGEST + 1), 2_000))
    for word in rng.sample(sorted(language), min(4, len(language))):
        edited = [(*word[:at], *new, *word[at + 1 :]) for at in range(len(word)) for new in [(), (word[at],) * 2]]
        edited += [(*word[:at], name, *word[at + 1 :]) for at in range(len(word)) for name in cfg.terminals]
        edited += [(*word[:at], *word[at + 1 : at + 2], word[at], *word[at + 2 :]) for at in range(len(word))]
        for new in (one for one in rng.sample(edited, min(CHANGED, len(edited))) if 0 < len(one) <= LONGEST):
            rows = tuple(f"{n}. {name}" for n, name in enumerate(new, 1))
            assert judge("\n".join(rows), verifier) == (new in language, new)


SHIPPED = dict.fromkeys([*authored.names("tasks"), *authored.names("grammars"), *authored.names("agents")])


@pytest.mark.parametrize("name", SHIPPED)
def test_plans_of_all_that_is_shipped_are_valid_and_can_be_drawn(name: str) -> None:
    loaded = load(name)
    verifier = Verifier(loaded.whole)
    for seed in range(2):
        planner = Planner(loaded.source, RandomLLM(seed), wording=loaded.wording, constraints=loaded.constraints)
        plan = planner.plan(loaded.task("117" if name == "openagi" else "")) if loaded.pack else planner.plan("")
        forms = [str(plan), plan.to_json(), *([str(plan.call)] if plan.call else [])]
        forms += [" ".join(plan.word)] if len(plan.word) > 1 else []  # one name alone is no row of steps
        for text in forms:
            found = verify_text(text, verifier)
            assert found.valid, (text, found.reason)
        drawn = Overlay(read_plan_text(str(plan), loaded.whole), loaded.rules)
        assert str(drawn.picture)
        # Two lines that are not alike, the one in the place of the other.
        lines = [line.split(": ", 1)[1] for line in str(plan).split("\n") if line.startswith("Step ")]
        if name in ("daily", "cooking") and len(lines) > 1:
            turned = "\n".join(f"Step {n}: {line}" for n, line in enumerate(reversed(lines), 1))
            assert judge(turned, verifier)[0] is False


ETL = CFG.from_string("%order prefix\nR -> render T\nT -> join T T | load_csv events | load_sql orders\n%limit 1")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("render(join(load_csv(events), load_sql(orders)))", True),
        ("render(join, load_csv(events), load_sql(orders))", False),
        ("1. Use load_sql on orders\n2. Use render on the result of step 1", True),
        ("1. Use load_sql on events\n2. Use render on the result of step 1", False),
        ("- [ ] load_sql on orders\n- [ ] render on the result of step 1", True),
        ("- render\n- load_sql", False),
        ("render load_sql orders", True),
        ("render(join(load_sql(orders), load_sql(orders)))", False),
    ],
)
def test_brackets_numbers_order_and_limits(text: str, valid: bool) -> None:
    assert verify_text(text, Verifier(ETL)).valid == valid


def test_answers_as_labels_of_decisions() -> None:
    pda = PDA.from_string(
        '%start p\n%accept r\n%decide p "Is it wet?"\np, yes, ε -> q, ε\np, no, ε -> s, ε\nq, dry, ε -> r, ε\n'
        's, go, ε -> r, ε\nyes "Yes"\nno "No"'
    )
    verifier = Verifier(pda)
    for text, valid in (("Step 1: Use dry", True), ("Is it wet? No\nUse dry", False), ("Is it wet? Yes\n1. dry", True)):
        assert verify_text(text, verifier).valid == valid
    assert verify_text("Step 1: Use dry", verifier).word == ("yes", "dry")


def test_a_text_that_may_be_read_in_two_ways_is_told() -> None:
    cfg = CFG.from_string('S -> a | b\na "Same"\nb "Same"')
    verifier = Verifier(cfg, Limits({"a": 0}))
    found = verify_text("Step 1: Use Same", verifier)
    assert (found.valid, found.word, found.also) == (True, ("b",), ("a",))
    assert "it may also be read as Same, and that is not valid" in found.reason


def test_the_line_as_the_file_counts_it_and_the_words_of_the_chart() -> None:
    chart = Flowchart.from_mermaid("""flowchart TD
        check[Check] --> up{Up?}
        up -->|yes| rec[Recovered]
        up -->|no| page[Page]
        page --> fail[Fail over] --> ver[Verify]
    """)
    found = verify_text("\n\n1. Check\n\n2. Fail over\n3. Verify\n", Verifier(chart))
    assert found.line == 5
    assert str(found) == (
        "not valid: line 5 (Fail over): no plan has this step there after line 3; there could stand: Recovered / Page\n"
        "nearest valid plan:\n  Step 1: Check\n  Step 2: Page\n  Step 3: Fail over\n  Step 4: Verify\n"
        "to get there:\n  insert after line 3: Page"
    )


def test_the_constraint_to_blame_with_the_line() -> None:
    pda = PDA.from_string('%start p\n%accept p\np, a, ε -> p, ε "A"\np, b, ε -> p, ε "B"')
    rules = pda & constraint("(not (eventually (next a a)))", pda, name="no two in a row")
    found = verify_text("1. A\n2. B\n3. A\n4. A", Verifier(rules))
    assert (found.line, found.constraints) == (4, ("no two in a row",))
    assert "because of constraint 'no two in a row'" in found.reason


RUNBOOK = Flowchart.from_mermaid("""flowchart TD
    a([Alert]) --> check[Check the dashboard]
    check --> up{Is the service up?}
    up -->|yes| rec[Note that it recovered] --> done([End])
    up -->|no| page[Page the engineer]
    page --> fail[Fail over]
    fail --> ver[Verify the standby] --> done
""").pda()


def lines(*texts: str) -> list[StepLine]:
    return [StepLine(2 * n, text, text) for n, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        (
            ("Check the dashboard", "Fail over", "Verify the standby"),
            ["insert after line 2: Page the engineer"],
        ),
        (
            ("Page the engineer", "Fail over", "Verify the standby"),
            ["insert before line 2: Check the dashboard"],
        ),
        (
            ("Check the dashboard", "Page the engineer", "Fail over"),
            ["insert after line 6: Verify the standby"],
        ),
        (("Check the dashboard", "Fail over", "Note that it recovered"), ["take out line 4: Fail over"]),
    ],
)
def test_what_is_missing_is_inserted_and_what_is_there_is_kept(texts: tuple[str, ...], changes: list[str]) -> None:
    found = find_remedy(RUNBOOK, lines(*texts), "forward", max_states=10_000)
    assert found is not None
    assert list(found.changes) == changes


def test_prefix_plans_are_told_as_the_lines_stand() -> None:
    pda = PDA.from_string('%start 3\n%accept 0\n3, c, ε -> 2, ε "C"\n2, b, ε -> 1, ε "B"\n1, a, ε -> 0, ε "A"')
    for texts, shown in ((("A", "C"), "insert after line 2: B"), (("B", "C"), "insert before line 2: A"),
                           (("A", "B"), "insert after line 4: C")):  # fmt: skip
        found = find_remedy(pda, lines(*texts), "prefix", max_states=1000)
        assert found is not None
        assert (found.steps, found.changes) == (("A", "B", "C"), (shown,))


def test_a_line_without_its_time_gets_the_time_of_its_place() -> None:
    pda = PDA.from_string("""
        %start 0
        %accept 3
        {t}, eat, ε -> {t+1}, ε "{t}:00: Eat" for t in 0..2
        {t}, read, ε -> {t+1}, ε "{t}:00: Read" for t in 0..2
        eat "Eat"
        read "Read"
        %limit 1 read
        %require 1 read
    """)
    found = find_remedy(pda, lines("Eat", "Eat", "Eat"), "forward", max_states=10_000)
    assert found is not None
    assert sorted(step.split(": ")[1] for step in found.steps) == ["Eat", "Eat", "Read"]
    assert [step.split(":")[0] for step in found.steps] == ["0", "1", "2"]
    verdict = verify_text("Eat\nEat\nEat", Verifier(pda))
    assert not verdict.valid
    assert verdict.nearest is not None
    assert pda.accepts(verdict.nearest)


def test_limits_and_constraints_are_kept() -> None:
    pda = PDA.from_string('%start p\n%accept p\np, a, ε -> p, ε "A"\np, b, ε -> p, ε "B"')
    rules = (pda & constraint("(until any b)", pda)).with_limits(Limits({"a": 1}))
    found = find_remedy(rules, lines("A", "A"), "forward", max_states=1000)
    assert found is not None
    text = "\n".join(f"Step {n}: {step}" for n, step in enumerate(found.steps, 1))
    assert verify_text(text, Verifier(rules)).valid
    assert found.steps[-1] == "B"


@pytest.mark.parametrize("seed", range(10))
def test_a_remedy_is_valid_and_costs_no_more_than_undoing_the_damage(seed: int) -> None:
    rng = random.Random(seed)
    plan = Planner(RUNBOOK, RandomLLM(seed)).plan("")
    texts = [step.text for step in plan.steps]
    texts.pop(rng.randrange(len(texts)))
    found = find_remedy(RUNBOOK, lines(*texts), "forward", max_states=10_000)
    assert found is not None
    assert found.distance <= 1
    made = "\n".join(f"Step {n}: {step}" for n, step in enumerate(found.steps, 1))
    assert verify_text(made, Verifier(RUNBOOK)).valid


def test_changes_of_lines() -> None:
    assert describe_line_changes(lines("A", "C"), ["Step 1: A", "Step 2: B", "Step 3: C"]) == (
        "insert after line 2: B",
    )
    assert describe_line_changes([], ["Step 1: A"]) == ("write: A",)
