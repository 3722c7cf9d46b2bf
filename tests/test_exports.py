"""Names that are imported when they are first used."""

import ast
import subprocess
import sys
from importlib import import_module
from operator import add
from pathlib import Path

import pytest

from formal_llm.exports import ByClass, LazyFunction, export_lazily, load_function

#: What a package imports at once, since importing it fills a table.
EAGER = {"formal_llm.llms": ["PROVIDERS"]}
LAZY = [
    "formal_llm", "formal_llm.agents", "formal_llm.automata", "formal_llm.automata.languages", "formal_llm.llms",
    "formal_llm.planning",
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
    assert typed == {name: f"{package}.{home}" for name, home in module._HOMES.items()}
    assert sorted({*typed, *EAGER.get(package, ())}) == sorted(module.__all__)
    for name, home in typed.items():
        assert getattr(module, name) is getattr(import_module(str(home)), name)


def test_a_name_that_is_not_exported_is_named() -> None:
    with pytest.raises(AttributeError, match=r"'formal_llm\.llms' has no attribute 'nobody'"):
        export_lazily("formal_llm.llms", {"LLM": "llm"})("nobody")


def test_a_function_is_imported_when_it_is_called() -> None:
    later = LazyFunction("formal_llm.nowhere:function")
    with pytest.raises(ModuleNotFoundError, match=r"formal_llm\.nowhere"):
        later()
    assert LazyFunction("operator:add")(1, 2) == 3
    assert load_function(LazyFunction("operator:add")) is load_function(add) is add


def test_a_class_has_the_value_of_its_nearest_base() -> None:
    values = ByClass[str]()
    values.register("builtins:int", "whole")
    values.register(str, "text")
    assert (values.find(int), values.find(bool), values.find(str), values.find(float)) == (
        "whole",
        "whole",
        "text",
        None,
    )
    values.register(bool, "truth")
    assert values.find(bool) == "truth"


def test_importing_the_library_loads_no_room() -> None:
    program = "import sys, formal_llm; print(*(name for name in sys.modules if name.startswith('formal_llm.')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []
