"""What plans are judged by: the scores that options mean, and task data."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.cli.bench_judging import ScoreOptions, TextScore, own_data, read_scores, task_data
from formal_llm.errors import FormalLLMError, InputError, ResourceNotFound
from formal_llm.packs.openagi.data.making import make_data


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
