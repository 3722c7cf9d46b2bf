"""Importing is cheap, and floors stand on floors below them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import formal_llm
from formal_llm.errors import NoValidPlan

HEAVY = ["torch", "transformers", "openai", "anthropic", "networkx", "lark", "typer", "pydantic", "numpy"]


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_loads_nothing_heavy() -> None:
    program = f"import sys, formal_llm; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(program).strip() == "[]"


def test_planning_with_the_builtin_answerer_loads_no_client() -> None:
    program = (
        "import sys; from formal_llm import Planner, TaskPack; pack = TaskPack.load('openagi');"
        "Planner(pack.cfg).plan(pack.task(3)); print([n for n in ('openai', 'anthropic', 'torch') if n in sys.modules])"
    )
    assert run(program).strip() == "[]"


def test_tools_load_their_libraries_when_they_need_them() -> None:
    heavy = [*HEAVY, "PIL", "mcp", "anyio", "ray", "asyncio", "multiprocessing"]
    modules = "formal_llm.tools, formal_llm.tools.mcp, formal_llm.tools.ray_executor"
    program = f"import sys, {modules}; print([name for name in {heavy!r} if name in sys.modules])"
    assert run(program).strip() == "[]"


def test_all_names_are_there() -> None:
    program = "import formal_llm; print([name for name in formal_llm.__all__ if not hasattr(formal_llm, name)])"
    assert run(program).strip() == "[]"


def test_errors_can_still_be_had_from_the_top() -> None:
    with pytest.warns(DeprecationWarning, match="import NoValidPlan from formal_llm.errors"):
        assert formal_llm.NoValidPlan is NoValidPlan
    with pytest.raises(AttributeError, match="no attribute 'did_you_mean'"):
        _ = formal_llm.did_you_mean
