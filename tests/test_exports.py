"""Importing is cheap: names are imported when they are first used, heavy libraries when they are needed."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from formal_llm.exports import export_lazily

#: What a package imports at once, since importing it fills a table.
EAGER = {"formal_llm.llms": ["PROVIDERS"]}
LAZY = [
    "formal_llm", "formal_llm.agents", "formal_llm.automata", "formal_llm.llms", "formal_llm.planning",
]  # fmt: skip


@pytest.mark.parametrize("package", LAZY)
def test_what_type_checkers_see_is_what_is_imported(package: str) -> None:
    module = import_module(package)
    assert module.__file__
    (seen,) = (
        node
        for node in ast.parse(Path(module.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {alias.name: node.module for node in seen.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == {name: f"{package}.{home}" for home, names in module._HOMES.items() for name in names.split()}
    assert sorted({*typed, *EAGER.get(package, ())}) == sorted(module.__all__)
    for name, home in typed.items():
        assert getattr(module, name) is getattr(import_module(str(home)), name)


def test_a_name_that_is_not_exported_is_named() -> None:
    with pytest.raises(AttributeError, match=r"'formal_llm\.llms' has no attribute 'nobody'"):
        export_lazily("formal_llm.llms", {"llm": "LLM"})("nobody")


HEAVY = ["torch", "transformers", "openai", "anthropic", "networkx", "lark", "typer", "pydantic", "numpy"]


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        ("import formal_llm", ["formal_llm.", *HEAVY]),
        (
            "from formal_llm import Planner, TaskPack; pack = TaskPack.load('openagi'); "
            "Planner(pack.cfg).plan(pack.task(3))",
            ["openai", "anthropic", "torch"],
        ),
        (
            "import formal_llm.tools, formal_llm.tools.mcp, formal_llm.tools.ray_executor",
            [*HEAVY, "PIL", "mcp", "anyio", "ray", "multiprocessing"],
        ),
    ],
)
def test_only_what_is_needed_is_loaded(program: str, unwanted: list[str]) -> None:
    program = f"{program}; import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [
        one for one in loaded if one in unwanted or ("formal_llm." in unwanted and one.startswith("formal_llm."))
    ] == []
