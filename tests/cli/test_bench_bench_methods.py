"""``formal-llm bench openagi --methods``: the paper's table in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.cli.bench import read_methods, spread, trained_llms
from formal_llm.errors import FormalLLMError, ResourceNotFound
from formal_llm.packs.openagi.data.making import make_data
from tests.cli.inside import runner

run = runner("bench")
COMMON = (
    "openagi", "--methods", "zero,constrained,formal,rltf", "--tasks", "3,115", "--samples", "1",
    "--text-score", "chrf",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, tasks=[3, 115], samples=1, side=48)
    return str(folder)


def test_the_papers_table(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "b"
    command = (*COMMON, "--llm", "test:random", "--llm", "builtin", "--data", data, "--out", str(out))
    code, printed, said = run(*command, "--limit", "2")
    assert code == 0, said
    assert "2 tasks, 1 repeat" in printed
    assert "it writes no free text" in printed  # in the cell of builtin zero
    assert "95 % over tasks" in printed
    assert "PUBLISHED, table 1" in printed
    columns = json.loads((out / "table.json").read_text())["columns"]
    assert [(one["llm"], one["method"], bool(one["note"])) for one in columns] == [
        ("test:random", "zero", False), ("test:random", "typed", False), ("test:random", "formal", False),
        ("test:random", "rltf", True),
        ("builtin", "zero", True), ("builtin", "typed", False), ("builtin", "formal", False), ("builtin", "rltf", True),
    ]  # fmt: skip


def test_what_cannot_be_asked(data: str, tmp_path: Path) -> None:
    code, _, said = run("openagi", "--methods", "zero,formel", "--out", str(tmp_path))
    assert code == 2
    assert "formel" in said
    assert "formal" in said
    code, _, said = run(*COMMON, "--data", data, "--adapter", str(tmp_path), "--out", str(tmp_path / "b"))
    assert code == 2
    assert "adapter" in said


def test_methods_by_their_names() -> None:
    assert read_methods("few, constrained,typed,rltf") == ["few", "typed", "rltf"]
    with pytest.raises(ResourceNotFound):
        read_methods(",")
    with pytest.raises(FormalLLMError, match="is for the method rltf"):
        trained_llms(["minilm"], ["formal"], Path("x"))
    assert trained_llms(["builtin"], ["rltf"], None) == {}


def test_a_limit_spreads() -> None:
    assert spread(range(10), 4) == [0, 2, 5, 7]
    assert spread(range(3), None) == spread(range(3), 9) == [0, 1, 2]
