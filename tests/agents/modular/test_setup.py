"""What is legal at a place of the rules, and rules that do not fit the tools."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Limits, constraint
from formal_llm.agents.modular.modules import respond
from formal_llm.agents.modular.setup import build_monitor, index_modules
from formal_llm.errors import ToolkitError
from tests.agents.modular.doubles import letters, plain

MODULES = index_modules(letters())


def test_the_last_tool_is_a_final_one() -> None:
    monitor = build_monitor(MODULES, None, None)
    assert list(monitor.allowed()) == ["a", "b", "c", "respond"] and not monitor.may_stop()
    assert monitor.after("respond").may_stop() and not monitor.after("respond").allowed()
    assert build_monitor(index_modules([respond()]), None, None).after("respond").may_stop()
    limited = build_monitor(MODULES, None, Limits(at_least={"b": 1}, at_most={"a": 0}))
    assert list(limited.allowed()) == ["b", "c"]


def test_rules_that_do_not_fit() -> None:
    with pytest.raises(ToolkitError, match="the rules name aa, which is no tool"):
        build_monitor(MODULES, CFG.from_string("S -> aa respond"), None)
    with pytest.raises(ToolkitError, match="do not name respond, so no run could end"):
        build_monitor(MODULES, [constraint("(until any a)", ["a", "b"])], None)
    with pytest.raises(ToolkitError, match="no module is final"):
        build_monitor(index_modules([plain("a")]), None, None)
    with pytest.raises(ToolkitError, match="two tools are called a"):
        index_modules([plain("a"), plain("a").tool])
