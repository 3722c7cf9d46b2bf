"""``formal-llm bench``: the table, in all forms; a run that goes on; what cannot be done."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from formal_llm.cli.bench import ScoreOptions, TextScore, own_data, read_scores, task_data
from formal_llm.errors import FormalLLMError, InputError, ResourceNotFound
from formal_llm.llms.hosted.batches import BatchedLLM
from formal_llm.packs.openagi.data.making import make_data
from tests.cli.inside import runner
from tests.llms.hosted.batches import Batches
from tests.llms.hosted.wire_server import WireServer

SMALL = ("--tasks", "7,116,106", "--repeats", "2", "--samples", "1", "--text-score", "chrf")

run = runner("bench")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, tasks=[7, 106, 116], samples=1, side=48)
    return str(folder)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_the_table(data: str, tmp_path: Path) -> None:
    llms = ("--llm", "test:random", "--llm", "builtin")
    code, printed, said = run("openagi", *llms, *SMALL, "--data", data, "--out", str(tmp_path / "b"))
    assert code == 0, said
    assert printed.startswith("OpenAGI, 2 tasks, 2 repeats, 1 sample each; tools: colorization, ")
    (valid,) = [line for line in printed.splitlines() if "valid plans" in line][:1]
    assert valid.count("100.0%") >= 2  # formal, of both
    assert "not asked: builtin zero: it writes no free text" in printed
    assert "left out: task 106" in printed
    assert "PUBLISHED, table 1 of Li et al. 2024" in printed
    assert "0.4914" in printed
    assert {path.name for path in (tmp_path / "b").iterdir()} == {
        "answers", "cache", "plans.jsonl", "results.jsonl", "scores.jsonl", "setting.json", "table.json", "table.md",
        "values",
    }  # fmt: skip
    columns: list[dict[str, Any]] = json.loads((tmp_path / "b" / "table.json").read_text())["columns"]
    assert [(column["llm"], column["method"]) for column in columns] == [
        ("test:random", "zero"), ("test:random", "few"), ("test:random", "typed"),
        ("test:random", "formal"), ("test:random", "look"),
        ("builtin", "typed"), ("builtin", "formal"), ("builtin", "look"),
    ]  # fmt: skip
    assert all(column["valid"] == 1 for column in columns if column["method"] == "formal")
    results = [json.loads(line) for line in (tmp_path / "b" / "results.jsonl").read_text().splitlines()]
    assert len(results) == 8 * 2 * 2
    assert all({"word", "steps", "valid", "reason", "value", "usage"} <= set(row) for row in results)
    assert "| valid plans |" in (tmp_path / "b" / "table.md").read_text()

    # The same command again: nothing is left to do, and the table is the same.
    before = (tmp_path / "b" / "plans.jsonl").read_bytes()
    code, again, _ = run("openagi", *llms, *SMALL, "--data", data, "--out", str(tmp_path / "b"))
    assert (code, again) == (0, printed)
    assert (tmp_path / "b" / "plans.jsonl").read_bytes() == before

    # Another setting is another benchmark.
    code, _, said = run("openagi", *SMALL, "--temperature", "1", "--data", data, "--out", str(tmp_path / "b"))
    assert code == 2
    assert "another setting (asking" in said


def test_other_forms(data: str, tmp_path: Path) -> None:
    common = ("openagi", "--method", "formal", *SMALL, "--data", data, "--out", str(tmp_path), "--no-published")
    code, printed, _ = run(*common, "--show", "json")
    assert code == 0
    figures = json.loads(printed)
    assert figures["columns"][0]["valid"] == 1
    assert figures["published"] is None
    assert figures["left_out"].keys() == {"106"}
    code, printed, _ = run(*common, "--show", "markdown")
    assert code == 0
    assert "| average over tasks |" in printed
    assert "PUBLISHED" not in printed


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")), reason="torch is not installed"
)
def test_pictures_compared_by_a_checkpoint(data: str, tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTImageProcessorPil, ViTModel

    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ViTModel(ViTConfig(**small, image_size=32, patch_size=8)).save_pretrained(tmp_path / "vit")
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    common = ("openagi", "--method", "formal", *SMALL, "--data", data, "--show", "json", "--no-published")
    code, printed, _ = run(*common, "--vit", str(tmp_path / "vit"), "--out", str(tmp_path / "out"))
    assert code == 0
    assert json.loads(printed)["scores"] == {"Task 3": "vit", "Task 2": "chrf"}
    code, _, said = run(*common, "--vit", str(tmp_path / "none"), "--out", str(tmp_path / "other"))
    assert code == 2
    assert "no checkpoint for vit" in said
    # It is looked at before anybody is asked.
    assert not (tmp_path / "other").exists()


def test_data_are_made(tmp_path: Path) -> None:
    common = ("openagi", "--method", "formal", *SMALL[2:], "--out", str(tmp_path))
    code, _, said = run(*common, "--tasks", "116")
    assert code == 0, said
    assert "making task data in" in said
    assert (tmp_path / "data" / "116").is_dir()
    code, _, said = run(*common, "--tasks", "116,117")
    assert code == 2
    assert "was made for other tasks and has no task 117" in said


def test_the_table_is_that_of_this_run(data: str, tmp_path: Path) -> None:
    common = ("openagi", *SMALL[4:], "--method", "formal", "--data", data, "--out", str(tmp_path), "--show", "json")
    assert run(*common, "--tasks", "7,116", "--repeats", "2")[0] == 0
    code, printed, _ = run(*common, "--tasks", "116", "--repeats", "1")
    figures = json.loads(printed)
    assert code == 0
    assert figures["title"].startswith("OpenAGI, 1 task, 1 repeat, 1 sample each;")
    assert figures["columns"][0]["plans"] == 1
    assert figures["columns"][0]["scores"]["Task 3"] is None
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 4  # nothing on record is lost


def test_nobody_can_be_asked(tmp_path: Path) -> None:
    code, _, said = run("openagi", "--method", "zero", "--method", "few", *SMALL, "--out", str(tmp_path / "out"))
    assert code == 2
    assert "nobody can be asked: builtin zero: it writes no free text; builtin few" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("openag",), 2, "no benchmark or task pack 'openag'. Did you mean 'openagi'?"),
        (("openagi", "--tasks", "tests"), 2, "Did you mean 'test'"),
        (("openagi", "--tasks", "7,999"), 2, "no task '999'. There are: 0 to 184."),
        (("openagi", "--toolkit", "classic"), 2, "Did you mean 'classical'"),
        (("openagi", "--llm", "nobody"), 2, "'nobody' names no LLM"),
        (("openagi", "--bert", "x", "--text-score", "chrf"), 2, "--bert is for --text-score bertscore"),
        (("openagi", "--data", "nowhere", "--tasks", "7", "--text-score", "chrf"), 2, "no folder of task data"),
        (("openagi", "--method", "magic"), 2, "'magic' is not one of 'zero', 'few', 'typed', 'formal'"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], code: int, expected: str, tmp_path: Path) -> None:
    got, _, said = run(*arguments, "--out", str(tmp_path / "out"))
    assert got == code
    assert expected in said
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way(data: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    code, _, said = run("openagi", *SMALL, "--data", data, "--out", str(tmp_path / "out"))
    assert code == 2
    assert "is no folder" in said


def test_data_without_a_task(data: str, tmp_path: Path) -> None:
    code, _, said = run("openagi", "--tasks", "8", "--text-score", "chrf", "--data", data, "--out", str(tmp_path))
    assert code == 2
    assert "no data for the task '8'" in said


def options(text: TextScore = TextScore.chrf, bert: str | None = None, vit: str | None = None) -> ScoreOptions:
    return ScoreOptions(text, bert, None, vit, "cpu")


def test_the_scores_that_options_mean() -> None:
    found = read_scores(options())
    assert (found.texts.name, found.images.name, found.image_text) == ("chrf", "ssim", None)


def test_scores_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(FormalLLMError, match="--bert is for --text-score bertscore"):
        read_scores(options(bert="x"))
    with pytest.raises(ResourceNotFound, match="encoder"):
        read_scores(options(TextScore.bertscore, bert=str(tmp_path / "none")))
    with pytest.raises(FormalLLMError, match="vit"):
        read_scores(options(vit=str(tmp_path / "none")))


def test_data_are_read_or_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_data(tmp_path / "given", tasks=[116], samples=1, side=48)
    assert list(task_data(tmp_path / "given", [116])) == [116]
    with pytest.raises(ResourceNotFound, match="no data for the task '117'"):
        task_data(tmp_path / "given", [116, 117])
    with pytest.raises(ResourceNotFound, match="folder of task data"):
        task_data(tmp_path / "nowhere", [116])

    assert list(own_data(tmp_path, [116], 1)) == [116]
    assert "making task data in" in capsys.readouterr().err
    assert list(own_data(tmp_path, [116], 1)) == [116]
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="was made for other tasks and has no task 117"):
        own_data(tmp_path, [116, 117], 1)


def test_in_batches(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each method asks all its plans together: one batch for texts and looks, one a question for the others."""

    def write(body: dict[str, Any]) -> str:
        return '{"choice": 1}' if "json_schema" in str(body) else "Step 1: Use Colorization"

    methods = ("--method", "zero", "--method", "look", "--method", "formal", "--method", "typed")
    batches = Batches(write, looks=0)
    with WireServer(batches) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setattr(BatchedLLM.__init__, "__defaults__", (None, 0.01))
        common = ("openagi", "--batch", *methods, *SMALL, "--data", data, "--out", str(tmp_path / "b"))
        code, _, said = run(*common, "--llm", "openai:x")
        assert code == 0, said
        assert batches.sizes[:2] == [4, 4]
        assert len(batches.sizes) < 30 < sum(batches.sizes)
    code, _, said = run("openagi", "--batch", "--llm", "builtin", *SMALL, "--data", data, "--out", str(tmp_path / "c"))
    assert code != 0
    assert "builtin is not asked in batches" in said
