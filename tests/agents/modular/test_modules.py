"""The modules: what each does, and that nothing a model writes is executed."""

from __future__ import annotations

import asyncio
import io
import os

import pytest

from formal_llm.agents.modular.modules import (
    ask,
    calculate,
    function_call,
    respond,
    scripted_user,
    search,
    standard_modules,
    terminal_user,
)
from formal_llm.agents.tools import Corpus
from formal_llm.errors import InputError, NotationError, ToolkitError


def test_ask() -> None:
    asking = ask(scripted_user("blue"))
    assert asking.tool("Which colour?") == "blue" and not asking.nests
    with pytest.raises(EOFError, match="no answer to 'Which"):
        asking.tool("Which colour?")


def test_a_user_at_the_terminal() -> None:
    shown = io.StringIO()
    user = terminal_user(io.StringIO("green\n"), shown)
    assert user("Which?\x1b[2J") == "green"
    assert "Which?" in shown.getvalue() and "\x1b" not in shown.getvalue()
    with pytest.raises(EOFError):
        user("Which?")


def test_calculate_reads_arithmetic_and_executes_nothing() -> None:
    assert calculate().tool("50% of 80") == "40"
    with pytest.raises(NotationError):
        calculate().tool("__import__('os').getpid()")


def test_search() -> None:
    searching = search(Corpus.shipped())
    assert "1,230 kilometres" in searching.tool("Rhine") and searching.summarised
    assert searching.tool("Rhine") == searching.tool("Rhine")
    with pytest.raises(InputError):
        search("nowhere.sqlite")


def test_a_python_function_runs_in_a_process_of_its_own() -> None:
    calling = function_call("tests.agents.modular.isolated_tools:whose")
    assert int(asyncio.run(calling.tool("x"))) != os.getpid()
    with pytest.raises(ToolkitError):
        function_call("nowhere:nothing")


def test_the_standard_ones() -> None:
    assert [module.name for module in standard_modules()] == ["search", "calculate", "respond"]
    assert next(module.name for module in standard_modules(user=scripted_user())) == "ask"
    assert respond().final and respond().tool("yes") == "yes"
