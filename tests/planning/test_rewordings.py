"""Tasks in other words: listed, and composed."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import TaskPack
from formal_llm.errors import NotationError, ResourceNotFound
from formal_llm.planning.rewordings import has_labels, read_rewordings, read_sentences


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


COMPOSED = """
seed = 3
[[paraphrases]]
task = 5
each = ["noise", "grey"]
draw = 6
texts = ["a {each:adj} {photo}. {photo}s, {each:fix}"]
[phrases]
photo = ["image", "{old} photo"]
old = ["ugly"]
[words.noise]
adj = ["gritty", "noisy"]
fix = ["clean it"]
[words.grey]
adj = ["grey"]
fix = ["colour it"]
"""


def test_a_listed_sentence_is_its_task_in_other_words(pack: TaskPack, tmp_path: Path) -> None:
    (task,) = read_rewordings(pack, written(tmp_path, '[[paraphrases]]\ntask = 7\ntexts = ["Give {it} colours."]\n'))
    known = pack.tasks[7]
    assert (task.description, task.original) == ("Give {it} colours.", known.description)
    assert (task.goal, task.limits, task.inputs, task.group) == (known.goal, known.limits, known.inputs, known.group)


def test_composed_sentences(pack: TaskPack, tmp_path: Path) -> None:
    file = written(tmp_path, COMPOSED)
    found = [task.description for task in read_rewordings(pack, file)]
    assert found == [task.description for task in read_rewordings(pack, file)]
    assert len(set(found)) == len(found) == 6
    nouns = ("image", "ugly photo")
    orders = ("gritty and grey", "grey and gritty", "noisy and grey", "grey and noisy")
    fixes = ("clean it and colour it", "colour it and clean it")
    capital = {noun: noun[0].upper() + noun[1:] for noun in nouns}
    possible = {
        f"A {order} {noun}. {capital[other]}s, {fix}"
        for order in orders for noun in nouns for other in nouns for fix in fixes
    }  # fmt: skip
    assert set(found) <= possible
    assert found != [
        task.description for task in read_rewordings(pack, written(tmp_path, COMPOSED.replace("= 3", "= 4", 1)))
    ]


def test_there_are_no_more_than_there_can_be(pack: TaskPack, tmp_path: Path) -> None:
    text = '[[paraphrases]]\ntask = 7\ndraw = 9\ntexts = ["an {x}", "a {x}"]\n[phrases]\nx = ["owl"]\n'
    assert [task.description for task in read_rewordings(pack, written(tmp_path, text))] == ["An owl"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[paraphrases]]\ntask = 185\ntexts = ["x"]\n', "the tasks 0 to 184"),
        ('[[paraphrases]]\ntask = 7\ntext = ["x"]\n', "text"),
        ('[[paraphrases]]\ntask = 7\ndraw = 1\ntexts = ["{foto}"]\n[phrases]\nphoto = ["x"]\n', "photo"),
        ('[[paraphrases]]\ntask = 7\ndraw = 1\ntexts = ["{a}"]\n[phrases]\na = ["{a}"]\n', "stand for themselves"),
        ('[[paraphrases]]\ntask = 7\ndraw = 1\neach = ["y"]\ntexts = ["{each:adj}"]\n', "y"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(pack: TaskPack, tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(NotationError, match=told) as error:
        read_rewordings(pack, written(tmp_path, text))
    assert "mine.toml" in str(error.value)


def test_a_file_that_is_not_there(pack: TaskPack) -> None:
    with pytest.raises(ResourceNotFound, match="paraphrases"):
        read_rewordings(pack, "paraphrase.toml")


LABELLED = """
[[sentences]]
given = ["image"]
goal = "text"
steps = ["denoising", "captioning"]
texts = ["Snow all over it: what is going on?", "Describe the grainy one."]
[[sentences]]
steps = ["translation"]
texts = ["Given English text, how to translate the text in German step by step?"]
"""


def test_labelled_sentences(pack: TaskPack, tmp_path: Path) -> None:
    file = written(tmp_path, LABELLED)
    assert has_labels(pack, file) and not has_labels(pack, "paraphrases.toml")
    first, second, third = read_sentences(pack, file)
    assert (first.task.description, first.steps) == ("Snow all over it: what is going on?", {"denoising", "captioning"})
    assert (second.task.inputs, second.task.goal) == (("image",), "text_plan")
    assert (third.task.inputs, third.steps) == (("text",), {"translation"})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("captioning", "captionin", "captionin"),
        ('goal = "text"\n', 'goal = "sound"\n', "sound"),
        ('["image"]', '["sound"]', "sound"),
        ('steps = ["translation"]\n', "", "steps"),
    ],
)
def test_labelled_sentences_that_cannot_be(pack: TaskPack, tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises((NotationError, ResourceNotFound), match=problem):
        read_sentences(pack, written(tmp_path, LABELLED.replace(old, new)))


def test_no_file_of_labelled_sentences(pack: TaskPack, tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound):
        read_sentences(pack, tmp_path / "none.toml")
    with pytest.raises(NotationError):
        has_labels(pack, written(tmp_path, "[[["))
