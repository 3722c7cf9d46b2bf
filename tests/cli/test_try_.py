"""``formal-llm try``, its input piped."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.cli import try_
from tests.cli.inside import invoke

RULES = """\
%order prefix
%limit 1
%limit * shirt
Plan "shirt" -> Tool Plan | shirt
Tool -> wash | dry | iron
wash "Wash"
dry "Dry"
iron "Iron"
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.cfg"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def run(*arguments: str, typed: str = ""):
    return invoke("try", *arguments, typed="".join(f"{line}\n" for line in typed.split("/") if typed))


def told(*arguments: str, typed: str) -> list[str]:
    """What was said after each line that was typed."""
    return [part.strip() for part in run(*arguments, typed=typed).stderr.split("> ")][1:]


def test_a_plan_from_answers_and_its_replay(rules: str) -> None:
    done = run(rules, "Wash it", typed='1/the output of "Iron"/2. /')
    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["Step 1: Use Iron on shirt", "Step 2: Use Wash on the result of step 1"]
    assert "Task description: Wash it" in done.stderr
    assert "The plan is finished." in done.stderr
    script = done.stderr.split("to replay it: ")[1].split()
    assert script == ["--llm", "test:script=1,2,2"]
    again = invoke("plan", rules, "Wash it", *script)
    assert again.stdout == done.stdout


def test_back_and_again(rules: str) -> None:
    done = run(rules, typed="1/1/back/back/again/script/again/back/3/back/back/again/quit")
    assert done.exit_code == 0
    assert done.stdout == "Step 1: Use Wash\n"
    assert "--llm test:script=1\n" in done.stderr
    said = told(rules, typed="back/again/1/back/2/again/quit")
    assert said[0] == "no question has been answered yet"
    assert said[1] == said[5] == "no answer was taken back, or another one was given since"


def test_why(rules: str) -> None:
    said = told(rules, "--require", "iron=1", typed='why/1/why/why wash/why Dry/why quux/why the output of "Wash"/quit')
    assert said[0] == "not offered: shirt: because of %require 1 iron"
    assert "(2 more left out by the rules: why)" in said[1]
    assert said[2].splitlines()[0] == 'not offered: the output of "Wash": because of %limit 1 wash'
    assert said[3].startswith("Wash cannot stand at place 1 because of %limit 1 wash; ")
    assert said[4] == "Dry is offered: 1"
    assert said[5] == "there is no step or option 'quux' here"
    assert said[6] == "it is left out because of %limit 1 wash"


def test_why_names_constraints() -> None:
    said = told("daily", typed="1/1/why washing/why Eat breakfast/quit")
    assert said[2].startswith(
        "Switch on the washing machine cannot stand at place 1 because of constraint 'the hour after"
    )
    assert said[3] == "Eat breakfast is offered: 1"


def test_why_of_a_selection_and_of_what_comes_after_an_option(tmp_path: Path) -> None:
    path = tmp_path / "g.cfg"
    path.write_text("S -> some(a, b, c) T\nT -> U d | e\nU -> f U | ε\n", encoding="utf-8")
    said = told(str(path), "--limit", "b=0", typed="why/why b/1,2/why d/why a/quit")
    assert said[0] == "not offered: b: because of %limit 0 b"
    assert "because of %limit 0 b" in said[1]
    assert said[3] == "d can come next, after option 1"
    assert said[4].startswith("a cannot stand at place 3; ")
    assert run(str(path), "--limit", "b=0", typed="1,2/quit").stderr.endswith("--llm test:script=1+2\n")


def test_an_earlier_answer_excludes_it(tmp_path: Path) -> None:
    path = tmp_path / "g.cfg"
    path.write_text("S -> a T | a U\nT -> b | c\nU -> d | e\n", encoding="utf-8")
    said = told(str(path), typed="1/why d/quit")
    assert said[1] == "d could come next, but not after the last answers: take them back"


def test_plan_left_help_and_what_is_no_answer(rules: str) -> None:
    said = told(rules, typed="1/plan/left/help/9/huh/left 3/quit")
    assert said[1].splitlines() == ["Step n: Use Wash;", "Step n-1: ?"]
    assert said[2].splitlines()[0] == "plans that are still possible: 5"
    assert said[2].splitlines()[1].endswith(" / wash")
    assert "take the last answer back" in said[3]
    assert all("(help tells what can be typed)" in line for line in said[4:7])


def test_infinitely_many_are_left(tmp_path: Path) -> None:
    path = tmp_path / "g.cfg"
    path.write_text("S -> a S | b\n", encoding="utf-8")
    assert "infinitely many; 5 with at most 5 more terminals" in told(str(path), typed="left/quit")[0]


def test_the_end_of_the_input_shows_the_partial_plan(rules: str) -> None:
    done = run(rules, typed="1")
    assert (done.exit_code, done.stdout) == (0, "Step 1: Use Wash\n")
    assert "not finished: 1 terminal so far" in done.stderr
    done = run(rules)
    assert (done.exit_code, done.stdout) == (0, "")


def test_interrupted(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take = try_._Trial._take_line

    def interrupted(self: try_._Trial, line: str) -> None:
        if line == "stop":
            raise KeyboardInterrupt
        take(self, line)

    monkeypatch.setattr(try_._Trial, "_take_line", interrupted)
    done = run(rules, typed="1/stop")
    assert (done.exit_code, done.stdout) == (130, "Step 1: Use Wash\n")
    assert "interrupted" in done.stderr


def test_after_the_end(rules: str) -> None:
    said = told(rules, typed="4/huh/left/why/why wash/plan/back/4/")
    assert "The plan is finished." in said[0]
    assert said[1].startswith("the plan is finished; there is")
    assert said[2] == "the plan is finished"
    assert said[4].startswith("Wash cannot stand at place 1; the plan must begin after it")
    assert said[5] == "shirt"


def test_dead_ends_without_lookahead(tmp_path: Path) -> None:
    path = tmp_path / "g.cfg"
    path.write_text("S -> a T | b T | c\nT -> d e | d f\n%limit 0 e f\n", encoding="utf-8")
    done = run(str(path), "--lookahead", "off", typed="1/1/quit")
    assert "dead end; back to" in done.stderr
    assert done.exit_code == 0


def test_forced_choices_and_wrong_arguments(rules: str) -> None:
    done = run(rules, "--limit", "dry=0", "--limit", "iron=0", "--require", "wash=1", typed="quit")
    assert "taken without a question: " in done.stderr
    assert run(rules, "--limit", "wash=0", "--require", "wash=1").exit_code == 1
    assert run("nowhere.cfg").exit_code == 2


def test_a_number_is_a_number_and_a_text_is_that_option_alone(tmp_path: Path) -> None:
    path = tmp_path / "rules.cfg"
    path.write_text('S -> a | b | c | d\na "2"\nb "C++"\nc "C#"\nd "c++"\n')
    assert run(str(path), typed="2/").stdout == "Step 1: Use C++\n"
    assert run(str(path), typed="C#/").stdout == "Step 1: Use C#\n"
    assert run(str(path), typed="c++/").stdout == "Step 1: Use c++\n"
    assert "(help tells what can be typed)" in told(str(path), typed="C/quit")[0]


def test_the_search_for_a_question_is_bounded(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    planner = try_.Planner
    monkeypatch.setattr(
        try_, "Planner", lambda *given, **settings: seen.append(settings) or planner(*given, **settings)
    )
    assert run(rules, "--search-time", "0.2", typed="quit").exit_code == 0
    assert run(rules, typed="quit").exit_code == 0
    assert [settings["search_time"] for settings in seen] == [0.2, 0.05]
    assert run(rules, "--search-time", "-1").exit_code == 2
