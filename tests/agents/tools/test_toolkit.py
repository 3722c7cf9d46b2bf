"""The agents' tools as tools of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from formal_llm import CFG, Planner
from formal_llm.agents.tools import Corpus, agent_toolkit
from formal_llm.errors import InputError, ToolError
from formal_llm.tools.isolated import isolated


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_called_by_hand() -> None:
    tools = agent_toolkit()
    assert [str(tool) for tool in tools] == ["calculate(text) -> text", "search(text) -> text", "lookup(text) -> text"]
    assert all(tool.description for tool in tools)
    assert tools["calculate"]("50% of 80") == "40"
    assert tools["search"]("Danube").startswith("The Danube")
    assert tools["lookup"]("black sea").startswith("(Result 1 / 1)")


def test_each_toolkit_is_one_run() -> None:
    corpus = Corpus.shipped()
    one, other = agent_toolkit(corpus), agent_toolkit(corpus.path)
    one["search"]("Danube")
    assert other["lookup"]("river") == "No more results." != one["lookup"]("river")


def test_an_executor_carries_out_a_plan_of_them() -> None:
    cfg = CFG.from_string("%order prefix\nText -> calculate Text | search Text | what")
    tools = agent_toolkit()
    tools.check(cfg, {"Text": "text", "what": "text"})
    plan = Planner(cfg, "test:script=1,3").plan("calculate")
    assert tools.run(plan, {"what": "10^2"}).output == "100"
    with pytest.raises(ToolError, match="units are not calculated with"):
        tools.run(plan, {"what": "5 km"})


def test_searches_are_not_shared_between_steps() -> None:
    """A search changes what a lookup sees: no result may come from a cache."""
    tools = agent_toolkit()
    assert [tool.pure for tool in tools] == [True, False, False]


def test_no_corpus() -> None:
    with pytest.raises(InputError, match="no such file"):
        agent_toolkit("nowhere.sqlite")


def test_over_mcp() -> None:
    """A server hands the tools out as any functions; whoever speaks the protocol can use them."""
    mcp = pytest.importorskip("mcp.server", reason="the extra 'mcp' is not installed")
    from formal_llm.tools.mcp import mcp_tools

    server = mcp.MCPServer("agents")
    for tool in agent_toolkit():
        server.add_tool(tool.function, name=tool.name, description=tool.description)
    with mcp_tools(server) as tools:
        found = {tool.name: tool for tool in tools}
        assert found["calculate"]("80 + 10%") == "88"
        assert found["search"]("Rhine").startswith("The Rhine")
        assert found["lookup"]("lorelei").startswith("(Result 1 / 1)")


def test_in_a_process_of_its_own() -> None:
    assert asyncio.run(isolated("formal_llm.agents.tools.toolkit:calculate")("2^10")) == "1024"
