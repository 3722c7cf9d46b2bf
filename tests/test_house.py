"""The house stands: little ``Any``, no long module, a first plan that loads little.

Floors and circles of imports are contracts in pyproject.toml, which ``make imports`` checks; sizes are held by
``test_budget.py``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "formal_llm").rglob("*.py"))
MOST_LINES, MOST_ANY, BEHIND_A_PLAN = 700, 26, 110
#: All exceptions are in one module, so that their tree is read in one place.
LONG = {"formal_llm/errors.py"}

FIRST_PLAN = """
import sys
from formal_llm import CFG, Planner
print(Planner(CFG.from_string("%order forward\\nS -> a | b"), "test:random").plan("x").word)
print(sum(name.split(".")[0] == "formal_llm" for name in sys.modules))
"""


def _says_any(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether an annotation of a public function's signature is ``Any`` alone."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    annotations = [one.annotation for one in every] + [node.returns]
    return any(isinstance(one, ast.Name) and one.id == "Any" for one in annotations)


def test_little_any() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_" and _says_any(node)
    ]
    assert len(found) <= MOST_ANY, "\n".join(found)


def test_no_long_module() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES and name not in LONG} == {}


def test_a_first_plan_loads_what_it_needs() -> None:
    ended = subprocess.run([sys.executable, "-c", FIRST_PLAN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(ended.stdout.split()[-1]) <= BEHIND_A_PLAN
