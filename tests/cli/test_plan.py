"""``formal-llm plan``: one task."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from formal_llm import CFG, Budget, Plan, Planner, RecordedLLM
from formal_llm.cli.plan import Show, print_plan
from formal_llm.cli.trace import TracePrinter
from tests.cli.inside import runner
from tests.cli.program import run
from tests.planning.drivers.writers import Drafter

TASK = "Given noisy grayscale image, how to return the caption in German step by step?"


def test_plan_prints_steps_and_nothing_else() -> None:
    done = run("plan", "openagi", TASK)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Step 1: Use Image Denoising on the input image",
        "Step 2: Use Colorization on the result of step 1",
        "Step 3: Use Image Captioning on the result of step 2",
        "Step 4: Use Machine Translation on the result of step 3",
    ]


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        ("call", "text = translation(captioning(colorization(denoising(input_image))))"),
        ("word", "translation captioning colorization denoising input_image"),
        ("tree", "Machine Translation"),
        ("mermaid", "flowchart"),
    ],
)
def test_other_forms_of_a_plan(show: str, expected: str) -> None:
    done = run("plan", "openagi", TASK, "--show", show)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_json_is_read_back() -> None:
    done = run("plan", "openagi", "117", "--llm", "test:random=4", "--show", "json")
    plan = Plan.from_json(done.stdout)
    assert json.loads(done.stdout)["word"] == list(plan.word)


def test_trace_shows_questions_and_answers_on_stderr() -> None:
    done = run("plan", "openagi", TASK, "--trace", "--show", "call")
    assert done.stdout.startswith("text = ")
    assert done.stderr.count("Task description:") == 5
    assert "-> 6: the output of" in done.stderr
    assert "questions: 5; choices taken without one: 0; dead ends: 0" in done.stderr


def test_limits_inputs_and_goals_from_the_command_line(tmp_path: Path) -> None:
    done = run("plan", "openagi", TASK, "--limit", "denoising=0", "--require", "detection=1", "--show", "word")
    assert done.returncode == 0, done.stderr
    assert "denoising" not in done.stdout
    assert "detection" in done.stdout
    done = run("plan", "openagi", "Draw it", "--input", "text", "--goal", "image", "--show", "word")
    assert "text_to_image" in done.stdout
    assert "input_image" not in done.stdout


def test_a_grammar_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "day.cfg").write_text('Day -> eat Day | sleep\neat "Eat"\n', encoding="utf-8")
    done = run("plan", "day.cfg", "my day", "--llm", "test:script=1,2", "--show", "word", cwd=tmp_path)
    assert done.stdout == "eat sleep\n"
    (tmp_path / "w.toml").write_text('step = "{text}!"', encoding="utf-8")
    done = run("plan", "day.cfg", "--llm", "test:script=1,2", "--wording", "w.toml", cwd=tmp_path)
    assert done.stdout == "Step 1: Use Eat\nStep 2: Use sleep\n"


def test_a_person_answers_on_the_terminal() -> None:
    done = run("plan", "openagi", "3", "--llm", "person", "--show", "word", stdin="2\nwhat\n5\n")
    assert done.stdout == "super_resolution input_image\n"
    assert "'what' is not a number" in done.stderr
    done = run("plan", "openagi", "3", "--llm", "person", stdin="1\n")
    assert done.returncode == 3
    assert "input ended" in done.stderr


def test_search_strategies(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> a S | b\n", encoding="utf-8")
    first = run("plan", "openagi", "15", "--llm", "test:random=3", "--search", "best-first", "--show", "word")
    assert first.returncode == 0, first.stderr
    (tmp_path / "c.toml").write_text("length_penalty = 3\nmax_steps = 6\n", encoding="utf-8")
    favoured = ("--config", "c.toml")
    done = run(
        "plan", "g.cfg", "--llm", "test:random=3", "--search", "best-first", *favoured, "--show", "word", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    done = run("plan", "openagi", "15", "--llm", "builtin", "--search", "sample", "--show", "word")
    assert "translation" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = 1\ntreis = 2\n", "c.toml:2:1: unknown key in a configuration of planning: treis"),
        ("\ntries = 0\n", "c.toml:2:1: tries is a number from 1, not 0"),
        ("length_penalty = inf\n", "c.toml:1:1: length_penalty is a number from 0, not inf"),
        ('lookahead = "sideways"\n', "c.toml:1:1: lookahead is"),
        ("rules = 1\n", "c.toml:1:1: rules is true or false, not 1"),
    ],
)
def test_wrong_settings_of_a_configuration_are_told_with_their_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    done = run("plan", "openagi", "3", "--config", "c.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_configuration_changes_how_questions_are_asked(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> a | b | c | d | e\n", encoding="utf-8")
    (tmp_path / "c.toml").write_text("page_size = 2\n", encoding="utf-8")
    plain, paged = (
        run("plan", "g.cfg", "x", "--llm", "test:first", "--trace", *config, cwd=tmp_path).stderr
        for config in ((), ("--config", "c.toml"))
    )
    assert "from 1 to 5" in plain
    assert "from 1 to 5" not in paged


# -- how a plan is shown, and how it was made ------------------------------------------------------------

RULES = '%order prefix\nPlan "lunch" -> cook Plan | wait Plan | eat\ncook "Cook"'


def test_every_form_with_an_empty_line_between(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Planner(CFG.from_string(RULES), "test:script=1,3").plan("eat")
    print_plan(plan, [Show.steps, Show.call, Show.word])
    assert capsys.readouterr().out == f"{plan}\n\nlunch = cook(eat)\n\ncook eat\n"
    print_plan(plan, [Show.json])
    assert json.loads(capsys.readouterr().out)["word"] == ["cook", "eat"]
    print_plan(plan, [Show.mermaid])
    assert capsys.readouterr().out.rstrip() == plan.to_mermaid().rstrip()
    print_plan(plan, [Show.tree])
    assert "Cook" in capsys.readouterr().out
    print_plan(Planner(CFG.from_string("%order prefix\nS -> a b")).plan("x"), [Show.call])
    assert capsys.readouterr().out == "s = a(b)\n"


def test_forms_are_names_of_the_option() -> None:
    code, _, said = runner("plan")("openagi", "3", "--show", "picture")
    assert code == 2
    for form in Show:
        assert f"'{form.value}'" in said


def test_ties_of_the_builtin_answerer_are_told() -> None:
    done = run("plan", "openagi", "Does the customer like our product?", "--input", "text", "--goal", "text")
    assert done.returncode == 0
    assert done.stderr == (
        "builtin: the task does not tell options apart; once the first of them was taken, as of: the output of "
        '"Text Summarization" | the output of "Text Generation" | the output of "Machine Translation" | the output of '
        '"Fill Mask" | the output of "Sentiment Analysis"\n'
    )
    assert run("plan", "openagi", "Given noisy image, how to return the regular image?").stderr == ""


TRIP = 'Trip "trip" -> Way Stay\nWay -> train "Take the train" | bus\nStay -> hotel "Sleep in a hotel" | tent\n'


def test_the_order_of_a_plan(tmp_path: Path) -> None:
    path, printed_plan = tmp_path / "trip.cfg", tmp_path / "plan.txt"
    plan, verify = runner("plan"), runner("verify")
    forward = "Step 1: Take the train\nStep 2: Sleep in a hotel\n"
    prefix = "Step 1: Sleep in a hotel\nStep 2: Take the train\n"
    for order, printed in (("", forward), ("%order forward\n", forward), ("%order prefix\n", prefix)):
        path.write_text(order + TRIP)
        assert plan(str(path), "--llm", "test:first") == (0, printed, "")
        printed_plan.write_text(printed)
        assert verify(str(path), str(printed_plan))[0] == 0
        assert runner("draw")(str(path), "--plan", str(printed_plan))[0] == 0


def test_what_looks_like_nested_calls_says_its_order(tmp_path: Path) -> None:
    path = tmp_path / "sum.cfg"
    path.write_text("Sum -> add Sum Sum | one\n")
    code, _, said = runner("check")(str(path))
    assert code == 0
    assert "Write %order prefix if inputs come first, %order forward if add comes first" in said
    path.write_text("%order prefix\nSum -> add Sum Sum | one\n")
    assert "warning" not in runner("check")(str(path))[2]


def test_an_automaton_that_says_its_order_prints_alike_with_and_without_its_pack() -> None:
    file = str(Path(__file__).parents[2] / "grammars" / "daily.pda")
    printed = runner("plan")(file, "--llm", "test:first")[1].splitlines()
    assert printed[0].startswith("Step 1: 10:00")
    assert printed[-1].endswith("19:00 to 20:00: Eat breakfast")  # nothing says here that it comes first


def test_one_plan_into_a_file(tmp_path: Path) -> None:
    plan, options = runner("plan"), ("openagi", TASK)
    for name, form in (("plan.txt", "steps"), ("plan.json", "json"), ("plan.mmd", "mermaid"), ("plan", "steps")):
        assert plan(*options, "--out", str(tmp_path / name)) == (0, "", "")
        printed = plan(*options, "--show", form)[1]
        written = (tmp_path / name).read_text(encoding="utf-8")
        if form == "json":
            assert Plan.from_json(written) == Plan.from_json(printed)
        else:
            assert written == printed != ""
    file = str(tmp_path / "both.json")
    assert plan(*options, "--out", file, "--show", "word", "--show", "steps")[0] == 0
    assert Path(file).read_text().startswith("translation captioning colorization denoising input_image\n\nStep 1")
    # What is not finished is shown, and takes no file's place.
    code, printed, said = plan(*options, "--out", file, "--max-questions", "1")
    assert (code, printed != "") == (4, True)
    assert Path(file).read_text().startswith("translation")
    code, printed, said = plan(*options, "--out", str(tmp_path / "no" / "x"))
    assert (code, printed) == (2, "")
    assert "there is no folder" in said


def test_a_plan_is_drafted_and_the_draft_is_traced(tmp_path: Path) -> None:
    (tmp_path / "my.cfg").write_text("S -> a S | b S | c\n")
    cfg = CFG.from_string("S -> a S | b S | c")
    with RecordedLLM(Drafter(["a nothing b c"], 2), tmp_path / "r.jsonl", again=True) as recorded:
        made = Planner(cfg, recorded, search="draft", budget=Budget(questions=200)).plan("t")
    given = ("plan", str(tmp_path / "my.cfg"), "t", "--search", "draft", "--show", "word")
    done = run(*given, "--llm", f"replay:{tmp_path / 'r.jsonl'}", "--trace")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*made.word]
    assert "a nothing b c" in done.stderr and "choices taken from the draft: 1" in done.stderr
    assert f"drafts: {made.usage.drafts}, choices from them: {made.usage.drafted}; " in done.stderr
    refused = run(*given)
    assert refused.returncode == 3 and "writes no free text" in refused.stderr


def test_a_model_that_only_chooses_drafts_nothing() -> None:
    done = run("plan", "openagi", "3", "--search", "draft", "--llm", "builtin")
    assert done.returncode == 3, done.stderr
    assert "--search greedy" in done.stderr


# -- what is shown while a plan is made --


def test_a_trace_tells_questions_answers_and_dead_ends() -> None:
    said = io.StringIO()
    trace = TracePrinter(Console(file=said, width=60))
    rules = CFG.from_string("S -> a T | b T | c\nT -> d e | d f\n%limit 0 e f")
    Planner(rules, "test:first", lookahead="off", on_event=trace).plan("x")
    text = said.getvalue()
    assert text.count("dead end; back to ") == 2
    assert "question 1 " in text
    assert "-> 1: " in text
    assert "finished" in text
    assert "dead ends: 2; " in text


def test_a_trace_tells_what_is_taken_without_a_question_and_what_failed() -> None:
    said = io.StringIO()
    trace = TracePrinter(Console(file=said, width=60))
    cfg = CFG.from_string("S -> a S | b S | c")
    Planner(cfg, "test:first", limits=type(cfg.limits)({"a": 0, "b": 0}), on_event=trace).plan("x")
    assert "taken without a question: c (2 ruled out)" in said.getvalue()
    outcomes = Planner(cfg, "test:script=9", tries=1, on_event=trace).plan_all(["x"])
    assert outcomes[0].error is not None
    assert "failed: InvalidAnswer" in said.getvalue()
