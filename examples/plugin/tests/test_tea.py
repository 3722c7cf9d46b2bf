"""Each plugin through formal_llm, as its users meet it. Run with pytest where the package is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import Planner, TaskPack
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import NotationError, UnknownProvider
from formal_llm.llms import resolve
from formal_llm.tools import toolkit_named


def test_the_provider_takes_what_has_its_words() -> None:
    """The first word that occurs in an option decides."""
    pack = TaskPack.load("tea")
    assert pack.planner("keywords:pour").plan(pack.tasks[0]).word == ("pour", "steep", "leaves")
    assert pack.planner("keywords:honey,milk").plan(pack.tasks[0]).word[:2] == ("honey", "milk")
    with pytest.raises(UnknownProvider, match=r"keywords"):
        resolve("keywords")


def test_every_task_of_the_pack_is_carried_out_by_the_toolkit() -> None:
    """The tools fit the grammar, and a plan runs."""
    pack, kitchen = TaskPack.load("tea"), toolkit_named("kitchen")
    kitchen.check(pack.cfg, pack.data["kinds"])
    plan = pack.planner("keywords:milk").plan(pack.tasks[1])
    assert kitchen.run(plan, {"leaves": "Assam"}).output == "cup with brew of Assam, milk"


def test_the_notation(tmp_path: Path) -> None:
    """A file is planned with, and a mistake in it is told with its place."""
    file = tmp_path / "cup.steps"
    file.write_text("boil\nmilk or honey ?\ndrink\n", encoding="utf-8")
    planned = [Planner(read_rules(file), f"keywords:{word}").plan("a cup") for word in ("honey", "none")]
    assert [[step.text for step in plan.steps] for plan in planned] == [["boil", "honey", "drink"], ["boil", "drink"]]
    file.write_text("boil\nadd Milk\n", encoding="utf-8")
    with pytest.raises(NotationError, match="'add Milk' is no step") as caught:
        read_rules(file)
    assert (caught.value.line, caught.value.column) == (2, 1)
