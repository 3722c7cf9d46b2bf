"""``formal-llm verify``, run as a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inside import invoke

VALID = "captioning colorization input_image"


def run(*arguments: str, stdin: str = ""):
    return invoke("verify", *arguments, typed=stdin)


def test_a_valid_plan_ends_with_0(tmp_path: Path) -> None:
    file = tmp_path / "plan.txt"
    file.write_text(VALID, encoding="utf-8")
    done = run("openagi", str(file))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "valid: it follows all the rules\n", "")


def test_a_plan_that_breaks_a_limit_ends_with_1() -> None:
    done = run("openagi", "-", "--limit", "colorization=0", stdin=VALID)
    assert done.exit_code == 1
    first, second, third = done.stdout.splitlines()
    assert first.startswith("not valid: Colorization cannot stand at place 2 because of %limit 0 colorization; ")
    assert second.startswith("nearest valid plan: input_image / captioning")
    assert third.startswith("  ")


def test_a_plan_must_fit_the_task_that_is_named() -> None:
    assert run("openagi", "-", stdin=VALID).exit_code == 0
    assert run("openagi", "-", "15", stdin=VALID).exit_code == 0  # from an image to a text
    for arguments in (("0",), ("15", "--goal", "image"), ("--goal", "image"), ("--input", "text")):
        done = run("openagi", "-", *arguments, stdin=VALID)
        assert done.exit_code == 1, arguments
    assert "because of %limit 0 input_image" in done.stdout


def test_a_goal_of_a_grammar(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("Day -> eat Night\nNight -> sleep | dance\n", encoding="utf-8")
    assert run(str(tmp_path / "g.cfg"), "-", stdin="dance").exit_code == 1
    assert run(str(tmp_path / "g.cfg"), "-", "--goal", "Night", stdin="dance").exit_code == 0


def test_requirements_and_json() -> None:
    done = run("openagi", "-", "--require", "translation=1", "--json", stdin=VALID)
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert done.stdout == json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    assert (data["valid"], data["position"], data["limits"]) == (False, 2, ["%require 1 translation"])
    assert data["distance"] == 1
    assert data["edits"] == [{"kind": "insert", "position": 0, "old": None, "new": "translation"}]


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (("openagi", "-"), "captioning colourization input_image", "did you mean colorization?"),
        (("openagi", "nowhere.txt"), "", "there is no such file"),
        (("openagj", "-"), "", "Did you mean 'openagi'?"),
        (("openagi", "-", "--limit", "colorization"), VALID, "NAME=N"),
        (("openagi", "-", "999"), VALID, "0 to 184"),
        (("openagi", "-", "--goal", "sound"), VALID, "There are: image, text"),
        (("openagi", "-", "--limit", "quux=1"), VALID, "unknown terminal in a limit: quux"),
    ],
)
def test_bad_input_ends_with_2(arguments: tuple[str, ...], stdin: str, told: str) -> None:
    done = run(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


def test_what_plan_prints_can_be_verified() -> None:
    for show in ("steps", "word", "call", "json"):
        made = invoke("plan", "openagi", "117", "--llm", "test:random=4", "--show", show)
        for task in ((), ("117",)):
            done = run("openagi", "-", *task, stdin=made.stdout)
            assert done.exit_code == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rules", ["refunds", "incident", "intake", "daily", "deploy", "openagi", "rewoo"])
def test_what_check_prints_can_be_verified(rules: str) -> None:
    printed = invoke("check", rules).stdout.splitlines()
    plans = [line[15:] for line in printed if line.startswith(("shortest plan", "at random"))]
    plans.append(invoke("check", rules, "--sample", "1", "--max-length", "12").stdout)
    assert len(plans) >= 5
    for plan in plans:
        assert run(rules, "-", stdin=plan).exit_code == 0, plan


def test_labels_with_commas_names_in_quotes_and_the_empty_plan(tmp_path: Path) -> None:
    (tmp_path / "g.agent").write_text(
        '(define g (:states (wash (:text "Wash, and dry")) (iron (:text "Iron")) ("fold it")) '
        "(:behavior (until (or wash iron) (or \"fold it\" empty))))", encoding="utf-8",
    )  # fmt: skip
    file = str(tmp_path / "g.agent")
    for plan in ("wash / iron", "Wash, and dry\nIron", 'wash "fold it"', "fold it"):
        assert run(file, "-", stdin=plan).exit_code == 0, plan
    for plan in ("wash / irn", "wash, iron"):
        wrong = run(file, "-", stdin=plan)
        assert wrong.exit_code == 2
        assert "unknown step: " in wrong.stderr
    grammar = tmp_path / "g.cfg"
    grammar.write_text("S -> a S | ε\n", encoding="utf-8")
    for plan in ("ε", "ε (the empty plan)", "", "a a"):
        assert run(str(grammar), "-", stdin=plan).exit_code == 0, plan


def test_a_recipe_can_be_verified_and_one_without_a_step_is_not_valid() -> None:
    made = invoke("plan", "cooking", "--llm", "test:random=4")
    done = run("cooking", "-", stdin=made.stdout)
    assert (done.exit_code, done.stdout) == (0, "valid: it follows all the rules\n")
    lines = made.stdout.splitlines(keepends=True)
    done = run("cooking", "-", stdin="".join(line for line in lines if "Marinate" not in line))
    assert done.exit_code == 1
    assert "this step is number 3, and it is numbered 4" in done.stdout
    left = [line.split(": ", 1)[1] for line in lines if "Marinate" not in line]
    done = run("cooking", "-", stdin="".join(left))
    assert done.exit_code == 1
    assert "insert after line 2: Marinate the clean slices of beef with the seasoning in a bowl" in done.stdout


def test_plans_of_automata_and_flowcharts_and_the_constraint_to_blame(tmp_path: Path) -> None:
    made = invoke("plan", "daily", "--llm", "test:random=2")
    assert run("daily", "-", stdin=made.stdout).exit_code == 0
    done = run("daily", "-", "--json", stdin="supper homework lunch basketball washing")
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert (data["constraints"], data["limits"]) == (["the hour after the washing machine is spent at home"], [])
    assert "because of constraint 'the hour after the washing machine is spent at home'" in data["reason"]
    chart = tmp_path / "refund.mmd"
    chart.write_text("flowchart TD\npaid{Paid?} -->|yes| back[Pay back]\npaid -->|no| no[Refuse]\n", encoding="utf-8")
    assert run(str(chart), "-", stdin="Step 1: Refuse\n").exit_code == 0
    assert run(str(chart), "-", stdin="1. Pay back\n2. Refuse\n").exit_code == 1
