"""What transfers: plans for the benchmark's sentences and for others, by their tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal_llm import FunctionLLM, RandomLLM, TaskPack
from formal_llm.errors import ResultsError
from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records
from formal_llm.packs.openagi.benchmark.transfer import HEADS, OTHER, OWN, ToolFigures, Transfer, lines_of
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.rewordings import read_rewordings


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def transfer(pack: TaskPack, **more: Any) -> Transfer:
    sentences = read_rewordings(pack, "paraphrases.toml")
    some = [place for place, task in enumerate(sentences) if task.original == pack.tasks[3].description]
    given = {"chosen": some, "repeats": 1, "matcher": LexicalMatcher(tool_texts(pack)), **more}
    return Transfer(pack, [3, 106], sentences, **given)


def row(run: Transfer, number: int, word: tuple[str, ...], **more: Any) -> Any:
    task = run.tasks[number]
    usage = {"input_tokens": 0, "output_tokens": 0}
    facts = {"llm": "x", "method": "formal", "task": number, "repeat": 0, "group": task.group, "usage": usage}
    return {**facts, "word": word, "valid": True, "questions": 1, **more}


def test_the_figures_are_of_the_tools(pack: TaskPack) -> None:
    run = transfer(pack)
    assert run.counts == (2, 3)
    first = min(number for number in run.tasks if number >= len(pack.tasks))
    wanted = tools_called_for(run.tasks[first])
    assert wanted == {"deblurring", "colorization"}
    rows = [
        row(run, 3, ("deblurring", "colorization", "input_image")),
        row(run, 106, ("text_to_image", "input_text"), valid=False),
        row(run, first, ("colorization", "input_image")),
        row(run, first, ("input_image",), repeat=1),  # of another command, with more repeats
    ]
    own, other = run.compute_figures(rows)
    assert (own.words, own.plans, own.valid, own.f1, own.exact) == (OWN, 2, 0.5, 0.5, 0.5)
    assert (other.words, other.plans, other.f1, other.exact) == (OTHER, 1, pytest.approx(2 / 3), 0.0)
    assert other.f1_interval is None  # of one task
    (line,) = lines_of([own, other])
    assert len(line) == len(HEADS)
    assert line[0] == "x formal"
    assert line[1:4] == ["50%", "0.500 (0.00 to 1.00)", "50%"]
    assert line[4:] == ["100%", "0.667", "0%"]
    assert lines_of([ToolFigures("x", "zero", OWN, 0, note="no")]) == [["x zero", "no", "", "", "-", "-", "-"]]


def test_who_is_trained_is_asked_by_its_own_name(pack: TaskPack, tmp_path: Path) -> None:
    run = transfer(pack)
    asked: list[str] = []

    def last(question: Any) -> int:
        asked.append(question.task)
        return len(question.options)

    llms = {"base": RandomLLM(1), "other": RandomLLM(2)}
    trained = {"base": AdaptedLLM("base+best", FunctionLLM(last))}
    assert [(one.llm, one.method) for one in run.list_skipped(llms, ["formal", "rltf"], trained)] == [("other", "rltf")]
    with Records(tmp_path, run.identity) as records:
        run.run(llms, ["formal", "rltf"], records, trained=trained)
        names = {(key.llm, key.method) for key in records.plans}
        assert len(records.plans) == 5 * 3
    assert names == {("base", "formal"), ("other", "formal"), ("base+best", "rltf")}
    assert set(asked) == {task.description for task in run.tasks.values()}
    # Fewer sentences are the same benchmark; other sentences are another one.
    assert transfer(pack, chosen=[0]).identity == run.identity
    with pytest.raises(ResultsError, match="sentences"), Records(tmp_path, {**run.identity, "sentences": "others"}):
        pass


def test_an_example_is_never_the_task_itself_whatever_its_words(pack: TaskPack) -> None:
    sentences = read_rewordings(pack, "paraphrases.toml")
    place = next(n for n, task in enumerate(sentences) if task.original == pack.tasks[20].description)
    run = transfer(pack, chosen=[place])
    number = len(pack.tasks) + place
    prompt = run.conditions.build_prompt("few", number)
    assert pack.tasks[20].description.rstrip(".") not in prompt
    assert sentences[place].description.rstrip(".") in prompt
    assert pack.tasks[30].description.rstrip(".") in prompt
