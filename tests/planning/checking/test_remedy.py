"""What to change in somebody's lines."""

from __future__ import annotations

import random

import pytest

from formal_llm import PDA, Flowchart, Limits, Planner, RandomLLM, Verifier, Wording, constraint, verify_text
from formal_llm.planning.checking.remedy import describe_line_changes, find_remedy
from formal_llm.planning.reading.prose import StepLine

RUNBOOK = Flowchart.from_mermaid("""flowchart TD
    a([Alert]) --> check[Check the dashboard]
    check --> up{Is the service up?}
    up -->|yes| rec[Note that it recovered] --> done([End])
    up -->|no| page[Page the engineer]
    page --> fail[Fail over]
    fail --> ver[Verify the standby] --> done
""").pda()


def lines(*texts: str) -> list[StepLine]:
    return [StepLine(n, 2 * n, text, text) for n, text in enumerate(texts, 1)]


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


def test_backward_plans_are_told_as_the_lines_stand() -> None:
    pda = PDA.from_string('%start 3\n%accept 0\n3, c, ε -> 2, ε "C"\n2, b, ε -> 1, ε "B"\n1, a, ε -> 0, ε "A"')
    for texts, changes in ((("A", "C"), "insert after line 2: B"), (("B", "C"), "insert before line 2: A"),
                           (("A", "B"), "insert after line 4: C")):  # fmt: skip
        found = find_remedy(pda, lines(*texts), "backward", max_states=1000)
        assert found is not None
        assert (found.steps, found.changes) == (("A", "B", "C"), (changes,))


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
    plan = Planner(RUNBOOK, RandomLLM(seed), wording=Wording(order="forward")).plan("")
    texts = [step.text for step in plan.steps]
    texts.pop(rng.randrange(len(texts)))
    found = find_remedy(RUNBOOK, lines(*texts), "forward", max_states=10_000)
    assert found is not None
    assert found.distance <= 1
    made = "\n".join(f"Step {n}: {step}" for n, step in enumerate(found.steps, 1))
    assert verify_text(made, Verifier(RUNBOOK), strict=True).valid


def test_changes_of_lines() -> None:
    assert describe_line_changes(lines("A", "C"), ["Step 1: A", "Step 2: B", "Step 3: C"]) == (
        "insert after line 2: B",
    )
    assert describe_line_changes([], ["Step 1: A"]) == ("write: A",)
