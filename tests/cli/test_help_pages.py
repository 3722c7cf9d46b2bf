"""The help of commands: the usual options, all of them, the examples."""

from __future__ import annotations

import re

import pytest
import typer
from typer.core import TyperOption

from formal_llm.cli.help_pages import PANELS, USUAL
from formal_llm.cli.main import app
from tests.cli.inside import runner

NAMES = {"openagi": ("bench", "openagi")}


def options(name: str) -> list[str]:
    group = typer.main.get_command(app)
    for part in NAMES.get(name, (name,)):
        group = group.get_command(None, part)  # type: ignore[attr-defined]  # a group
    return [one.opts[0] for one in group.params if isinstance(one, TyperOption)]


def shown(printed: str) -> set[str]:
    return set(re.findall(r"^│ [* ]*(--[a-z-]+)", printed, re.MULTILINE))


@pytest.mark.parametrize("name", USUAL)
def test_the_usual_options_are_shown_and_all_are_there_when_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 300)
    command, *rest = NAMES.get(name, (name,))
    first, every, again = (runner(command)(*rest, option)[1] for option in ("--help", "--help-all", "--help"))
    usual = {f"--{one}" for one in USUAL[name].split()}
    assert usual <= set(options(name))
    assert shown(first) == shown(again) == {*usual, "--help"}
    assert shown(every) == {*options(name), "--help"}
    assert f"--help-all shows all {len(options(name))}" in first
    assert "--help-all" not in every


def test_each_option_of_a_panel_is_one_of_a_command() -> None:
    known = {one for name in USUAL for one in options(name)}
    assert [one for panel in PANELS.values() for one in panel.split() if f"--{one}" not in known] == []


def test_examples_come_last() -> None:
    printed = runner("plan")("--help")[1]
    assert printed.index("Examples:") > printed.index("--llm") > printed.index("Plan a task")
