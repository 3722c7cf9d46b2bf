"""The tables of the experts: the shipped one, and a user's own over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import TaskPack
from formal_llm.errors import ResourceNotFound, ToolkitError
from formal_llm.packs.openagi.experts import settings as expert_settings
from formal_llm.packs.openagi.experts.settings import COMMON, LOADERS, read_settings


def mine(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return file


@pytest.fixture(autouse=True)
def no_file_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(expert_settings.VARIABLE, raising=False)


def test_the_shipped_tables_are_in_order(tmp_path: Path) -> None:
    told = read_settings()
    assert set(told.tools) == set(TaskPack.load("openagi").cfg.terminals) - {"input_image", "input_text"}
    for name, table in told.tools.items():
        assert table["checkpoint"].count("/") == 1, "the name of a repository"
        assert set(table) == {*COMMON, *LOADERS[table["loader"]].defaults}, name
        assert table["weights"] == "safetensors"
    # The shipped file obeys the rules for files of one's own.
    from formal_llm import authored

    assert read_settings(authored.find("tasks", "openagi") / "experts.toml") == told
    assert told.machine == {"device": "", "memory_gb": 0, "offline": False}


def test_the_book_names_every_checkpoint() -> None:
    page = (Path(__file__).parents[4] / "docs" / "howto" / "experts.md").read_text(encoding="utf-8")
    for name, table in read_settings().tools.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert f"`{table['checkpoint']}`" in row
        assert f"`{table['loader']}`" in row
    assert all(f"`{loader}`" in page for loader in LOADERS)


def test_a_table_changes_what_it_names(tmp_path: Path) -> None:
    shipped = read_settings()
    file = mine(tmp_path, "[tools.captioning]\nbatch = 3\n[machine]\nmemory_gb = 2.5\n")
    told = read_settings(file)
    assert told.tools["captioning"] == {**shipped.tools["captioning"], "batch": 3}
    assert {name: table for name, table in told.tools.items() if name != "captioning"} == {
        name: table for name, table in shipped.tools.items() if name != "captioning"
    }
    assert told.machine["memory_gb"] == 2.5


def test_another_loader_replaces_the_table(tmp_path: Path) -> None:
    told = read_settings(mine(tmp_path, '[tools.denoising]\nloader = "instruct_pix2pix"\ncheckpoint = "/models/r"\n'))
    table = told.tools["denoising"]
    assert (table["loader"], table["checkpoint"], table["batch"]) == ("instruct_pix2pix", "/models/r", 1)
    assert "keep_size" not in table


def test_a_revision_falls_with_its_checkpoint(tmp_path: Path) -> None:
    assert read_settings().tools["detection"]["revision"] == "no_timm"
    assert read_settings(checkpoints={"detection": "me/detr"}).tools["detection"]["revision"] == ""
    file = mine(tmp_path, '[tools.detection]\ncheckpoint = "me/detr"\nrevision = "v2"\n')
    assert read_settings(file).tools["detection"]["revision"] == "v2"
    assert read_settings(file, {"detection": "you/detr"}).tools["detection"]["checkpoint"] == "you/detr"


def test_a_tool_of_ones_own(tmp_path: Path) -> None:
    file = mine(tmp_path, '[tools.to_french]\nloader = "seq2seq"\ncheckpoint = "me/french"\nprefix = "fr: "\n')
    assert read_settings(file).tools["to_french"]["prefix"] == "fr: "
    assert len(read_settings(file).tools) == 16


def test_the_environment_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(expert_settings.VARIABLE, str(mine(tmp_path, "[tools.sentiment]\nbatch = 5\n")))
    assert read_settings().tools["sentiment"]["batch"] == 5
    other = tmp_path / "other.toml"
    other.write_text("[tools.sentiment]\nbatch = 6\n")
    assert read_settings(other).tools["sentiment"]["batch"] == 6


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.captioning]\nbatch = 1\n", "there is no table 'tool'; did you mean 'tools'"),
        ("[machine]\nmemory = 1\n", "machine: there is no setting 'memory'; did you mean 'memory_gb'"),
        ('[machine]\nmemory_gb = "4"\n', "memory_gb is a number, not '4'"),
        ("machine = 3\n", "machine and tools are tables"),
        ("[tools]\ncaptioning = 3\n", r"as in \[tools.captioning\]"),
        ("[tools.captoining]\nbatch = 1\n", "there is no tool 'captoining'; did you mean 'captioning'"),
        (
            "[tools.captioning]\nbacth = 1\n",
            r"tools.captioning: there is no setting 'bacth'; did you mean 'batch'\? \(line 2\)",
        ),
        ("x = " + "[" * 50_000, "nested too deeply"),
        ("[tools.captioning]\nbatch = 0\n", "batch counts from 1"),
        ("[tools.captioning]\nbatch = true\n", "batch is a whole number, not True"),
        ('[tools.captioning]\ndtype = "float8"\n', "dtype is one of float32, float16, bfloat16, not 'float8'"),
        ('[tools.captioning]\nweights = "pickle"\n', "weights is one of safetensors, any"),
        ("[tools.captioning]\nthreshold = 0.5\n", "there is no setting 'threshold'"),
        ('[tools.captioning]\nloader = "vqa_in_words"\n', "another loader needs another checkpoint"),
        ('[tools.captioning]\nloader = "blip"\ncheckpoint = "a/b"\n', "there is no loader 'blip'"),
        (
            '[tools.captioning]\nloader = "vqa_in_words"\ncheckpoint = "a/b"\n',
            r"the tool is \(image\) -> text, the loader vqa_in_words \(image, text\) -> text",
        ),
        ("[tools.sentiment]\ngeneration = { num_beams = 2 }\n", "does not write"),
        ("[tools.sentiment\n", "mine.toml: "),
    ],
)
def test_what_is_wrong_is_told(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=problem):
        read_settings(mine(tmp_path, text))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match=r"nothing\.toml"):
        read_settings(tmp_path / "nothing.toml")
