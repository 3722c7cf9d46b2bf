"""The files and lines that the measurement of mutants names are there."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.mutants import CORE, ROOT, equivalents, mirrored
from benchmarks.mutating.mutations import list_mutants


def test_each_module_of_the_core_has_its_test_file() -> None:
    modules = [f"formal_llm/{name}.py" for names in CORE.values() for name in names]
    assert [name for name in modules if not (ROOT / name).is_file() or not (ROOT / mirrored(name)).is_file()] == []


def test_each_equivalent_is_a_mutant_of_the_code() -> None:
    """A change of the line that it names asks for the reason again."""
    by_file = defaultdict(set)
    for key in equivalents():
        by_file[key[0]].add(key)
    for file, keys in by_file.items():
        assert keys <= {mutant.key for mutant in list_mutants(file, (ROOT / file).read_text(encoding="utf-8"))}
