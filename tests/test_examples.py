"""Every notebook of ``examples/`` runs from top to bottom, and prints what stands in it.

``pytest tests/test_examples.py --update-examples`` writes what they print. Pictures are not kept in the files: they
depend on the version of Graphviz, and whoever opens the notebook has them anew.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parent.parent
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
#: What a notebook must not see of the machine it runs on.
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


def printed(book: Any) -> list[str]:
    """What each cell of code printed."""
    return [
        "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
        for cell in book.cells
        if cell.cell_type == "code"
    ]


def run(book: Any, folder: Path) -> Any:
    """The same notebook with the outputs of a kernel of this environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries of notebooks say of each other
        client = nbclient.NotebookClient(
            book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        return client.execute()


def plain(book: Any) -> str:
    """A notebook as it is kept: of the outputs, what was printed."""
    number = 0
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            number += 1
            cell.execution_count = number
            text = "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": {"name": "python"}}
    return nbformat.writes(book, indent=1) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_stands_in_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    kept = printed(book)
    ran = run(book, tmp_path)
    if request.config.getoption("--update-examples"):
        path.write_text(plain(ran), encoding="utf-8")
    else:
        assert printed(ran) == kept
    said = [one.text for cell in ran.cells for one in cell.get("outputs", []) if one.get("name") == "stderr"]
    assert said == [], "a reader should see no warning"


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_small_and_without_pictures(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert text == plain(nbformat.reads(text, as_version=4)), "run pytest tests/test_examples.py --update-examples"


def test_there_are_a_few() -> None:
    assert 5 <= len(BOOKS) <= 8
