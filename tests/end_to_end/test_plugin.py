"""The template package is built, installed into a folder of its own, and used: Python, its own tests, the command line.

Nothing is fetched: it is built by the setuptools that is there, without its dependencies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from formal_llm import Planner, TaskPack
from formal_llm.automata.notation.files import endings, read_rules, read_rules_text
from formal_llm.errors import NotationError, ResourceNotFound, UnknownProvider
from formal_llm.llms import resolve
from formal_llm.tools import toolkit_named
from tests.cli.inside import runner
from tests.cli.program import run

ROOT = Path(__file__).parents[2]
STEPS = "boil\nmilk or honey ?\ndrink\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the template package is installed."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "examples" / "plugin", source)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
         "--disable-pip-version-check", "--target", str(target), str(source)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def here(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path of this process."""
    monkeypatch.syspath_prepend(installed)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "formal_llm_tea"]:
        del sys.modules[name]


# -- from Python -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_a_pack_is_planned_by_a_provider_and_carried_out_by_a_toolkit() -> None:
    pack = TaskPack.load("tea")
    assert not any(name.startswith("formal_llm_tea.") for name in sys.modules if not name.endswith(".pack"))
    plan = pack.planner("keywords:milk").plan(pack.tasks[1])
    assert toolkit_named("kitchen").run(plan, {"leaves": "Assam"}).output == "cup with brew of Assam, milk"


@pytest.mark.usefixtures("here")
def test_rules_in_a_notation_of_another_package_are_read(tmp_path: Path) -> None:
    file = tmp_path / "cup.steps"
    file.write_text(STEPS)
    assert endings()[-1] == ".steps"
    assert read_rules(file) == read_rules_text(STEPS, "cup.steps")
    assert Planner(read_rules(file), "keywords:none").plan("a cup").word == ("boil1", "choice2=none_of_them", "drink3")


@pytest.mark.usefixtures("here")
def test_unknown_names_are_told_with_those_of_other_packages() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean 'keywords:milk'"):
        resolve("keywrds:milk")
    with pytest.raises(UnknownProvider, match="'keywords:' names no LLM"):
        resolve("keywords:")
    for wanted in (lambda: TaskPack.load("teas"), lambda: toolkit_named("kitchn")):
        with pytest.raises(ResourceNotFound, match=r"Did you mean '(tea|kitchen)'"):
            wanted()
    with pytest.raises(NotationError, match=r"there are: .*\.steps"):
        read_rules("cup.stps")
    assert "formal_llm_tea.pack" not in sys.modules  # names are told without a look into the package


@pytest.mark.usefixtures("here")
def test_without_the_package_its_names_are_unknown(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(installed)])
    with pytest.raises(UnknownProvider):
        resolve("keywords:milk")


# -- as a user of the command line -------------------------------------------------------------------------------------


def test_its_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    shutil.copytree(ROOT / "examples" / "plugin", folder)
    # Without what extends pytest, which takes most of the time.
    alone = {**os.environ, "PYTHONPATH": f"{ROOT}:{installed}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=folder, capture_output=True, text=True, timeout=120, env=alone
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.usefixtures("here")
def test_the_list_names_all_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, printed, said = runner("list")("plugins", "--load")
    assert (code, said) == (0, "")
    rows = [line.split("formal-llm-tea 0.1.0")[0].rsplit(maxsplit=1) for line in printed.splitlines()[1:]]
    assert rows == [["provider", "keywords"], ["task pack", "tea"], ["toolkit", "kitchen"], ["notation", "steps"]]
    assert "keywords:..." in runner("list")("llms")[1]
    assert "Tea, step by step" in runner("list")()[1]


@pytest.mark.usefixtures("here")
def test_a_task_is_planned_and_carried_out(tmp_path: Path) -> None:
    (tmp_path / "leaves.txt").write_text("Assam\n")
    done = run(
        "run", "tea", "Make a cup with milk", "--toolkit", "kitchen", "--llm", "keywords:milk,pour",
        "--input", "leaves=leaves.txt", "--out", "cup", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cup" / "output.txt").read_text() == "cup with brew of Assam, milk"


@pytest.mark.usefixtures("here")
def test_a_file_is_checked_and_its_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "cup.steps"
    file.write_text(STEPS)
    code, printed, said = runner("check")(str(file))
    assert (code, said) == (0, "")
    assert "plans          3" in printed
    file.write_text("boil\nadd Milk\n")
    code, _, said = runner("check")(str(file))
    assert code == 2
    assert "cup.steps:2:1: 'add Milk' is no step" in said.replace("\n", "")
