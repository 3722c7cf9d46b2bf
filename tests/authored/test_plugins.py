"""Plugins: found by name in what is installed, imported when they are asked for, refused with a reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from formal_llm.authored.plugins import Plugin, Plugins
from formal_llm.errors import PluginError, ResourceNotFound
from tests.packages import put

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package of numbers."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def put_numbers(package: str, points: str, code: str = "", version: str = "1.0") -> None:
        put(tmp_path, package, "formal_llm.numbers", points, code, version)

    yield put_numbers
    for name in set(sys.modules) - before:
        del sys.modules[name]


NUMBERS: Plugins[int] = Plugins(
    "formal_llm.numbers", "number", "a number of at least its name's length",
    lambda name, made: isinstance(made, int) and made >= len(name), lambda: ["zero"],
)  # fmt: skip


def test_a_plugin_is_found_and_imported_only_when_it_is_asked_for(install: Install) -> None:
    install("lazy", "ten = lazy:ten\nseven = lazy:inner.seven", "def ten(more): return 10 + more")
    assert NUMBERS.names() == ["seven", "ten"]
    assert NUMBERS.list_installed()[1] == Plugin("number", "ten", "lazy 1.0", "lazy:ten")
    assert NUMBERS.find("ten") is not None
    assert NUMBERS.make("eleven", 1) is None
    assert "lazy" not in sys.modules
    assert NUMBERS.make("ten", 1) == 11
    assert "lazy" in sys.modules


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import not_here", "cannot be imported: ModuleNotFoundError: No module named 'not_here'"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit", "cannot be imported: SystemExit"),
        ("def nine(more): return 9", "cannot be imported: AttributeError: module 'bad' has no attribute 'ten'"),
        ("ten = 10", "failed: TypeError: 'int' object is not callable"),
        ("def ten(): return 10", r"failed: TypeError: ten\(\) takes 0 positional arguments but 1 was given"),
        ("def ten(more): return 2", "has to give a number of at least its name's length, and gave 2"),
        ("def ten(more): return 10 + more['a']", "failed: TypeError: 'int' object is not subscriptable"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_its_package_and_the_cause(install: Install, code: str, problem: str) -> None:
    install("bad", "ten = bad:ten", code, "2.1")
    whose = r"the number 'ten' \(bad:ten, of the package bad 2\.1\)"
    with pytest.raises(PluginError, match=f"{whose} {problem}") as caught:
        NUMBERS.make("ten", 1)
    assert (caught.value.kind, caught.value.name, caught.value.packages) == ("number", "ten", ("bad 2.1",))


def test_what_a_plugin_raises_of_ours_is_left_as_it_is(install: Install) -> None:
    code = "from formal_llm.errors import ResourceNotFound\ndef ten(more): raise ResourceNotFound('shelf', 'x')"
    install("picky", "ten = picky:ten", code)
    with pytest.raises(ResourceNotFound, match="no shelf 'x'"):
        NUMBERS.make("ten", 1)


def test_two_packages_with_one_name_are_both_named_and_neither_is_imported(install: Install) -> None:
    install("one", "ten = one:ten", "def ten(more): return 10")
    install("two", "ten = two:ten", "def ten(more): return 10", "3.0")
    with pytest.raises(PluginError, match=r"more than one number 'ten': of the packages one 1\.0 and two 3\.0"):
        NUMBERS.make("ten", 1)
    assert not {"one", "two"} & set(sys.modules)
    assert NUMBERS.names() == ["ten"]


def test_a_name_that_we_have_ourselves_is_refused(install: Install) -> None:
    install("thief", "zero = thief:zero", "def zero(more): return 10")
    with pytest.raises(PluginError, match=r"'zero' of the package thief 1\.0 is not used: formal_llm has one"):
        NUMBERS.make("zero", 1)
    assert "thief" not in sys.modules
    assert NUMBERS.names() == []
    assert [one.name for one in NUMBERS.list_installed()] == ["zero"]
