"""Reading task data, ours and the benchmark's."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from formal_llm.errors import InputError, ResourceNotFound
from formal_llm.packs.openagi.data import pixels
from formal_llm.packs.openagi.data.samples import TaskData, data_identity, read_data, read_picture


def write(folder: Path, files: dict[str, str | int]) -> Path:
    """Texts, and pictures of the given gray."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            Image.new("L", (2, 2), content).save(path)
    return folder


ORIGINAL: dict[str, str | int] = {
    "117/inputs/images/0.jpg": 10,
    "117/inputs/images/1.jpg": 20,
    "117/inputs/questions.txt": "first?\nsecond?\n",
    "117/outputs/answers.txt": "one\ntwo\n",
}


def test_the_layout_of_the_benchmark(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, {**ORIGINAL, "task_description.txt": "x", "9/inputs/captions.txt": "a\n"}))
    assert list(data) == [9, 117]
    task = data[117]
    assert len(task) == 2
    assert repr(task).endswith("117': 2 samples)")
    sample = task[1]
    assert list(sample.inputs) == ["images", "questions"]
    image = sample.inputs["images"]
    assert isinstance(image, Image.Image)
    assert image.getpixel((0, 0)) == 20
    assert sample.inputs["questions"] == "second?"
    assert sample.outputs == {"answers": "two"}
    assert [one.outputs["answers"] for one in task] == ["one", "two"]
    assert task[-1].outputs == {"answers": "two"}
    with pytest.raises(IndexError, match="2 samples"):
        task[2]
    assert data[9][0].outputs == {}, "the benchmark has no pictures to compare with"


def test_a_document_comes_before_its_question(tmp_path: Path) -> None:
    write(tmp_path / "1", {"inputs/questions.txt": "q\n", "inputs/context.txt": "c\n", "outputs/answers.txt": "a\n"})
    assert list(TaskData(tmp_path / "1")[0].inputs) == ["context", "questions"]


def test_ten_pictures_are_ordered_by_number(tmp_path: Path) -> None:
    write(tmp_path / "1", {f"inputs/images/{number}.png": number for number in range(11)})
    task = TaskData(tmp_path / "1")
    greys = [sample.inputs["images"].getpixel((0, 0)) for sample in task]  # type: ignore[union-attr]
    assert greys == list(range(11))


def test_an_empty_line_is_an_empty_text(tmp_path: Path) -> None:
    write(tmp_path / "1", {"inputs/text.txt": "a\n\nb\n", "outputs/labels.txt": "x\ny\n\n"})
    assert [sample.inputs["text"] for sample in TaskData(tmp_path / "1")] == ["a", "", "b"]
    write(tmp_path / "2", {"inputs/text.txt": ""})
    assert len(TaskData(tmp_path / "2")) == 0


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound):
        read_data(tmp_path / "nowhere")
    write(tmp_path, ORIGINAL)
    with pytest.raises(ResourceNotFound, match="117"):
        TaskData(tmp_path / "118")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"117/outputs/answers.txt": "one\n"}, "answers: 1"),
        ({"117/inputs/images/3.png": 1}, "not numbered"),
        ({"117/inputs/images/1.png": 1}, "not numbered"),
    ],
)
def test_parts_that_do_not_go_together(more: dict[str, str | int], said: str, tmp_path: Path) -> None:
    write(tmp_path, {**ORIGINAL, **more})
    with pytest.raises(InputError, match=said):
        read_data(tmp_path)


def test_what_is_no_picture_or_too_large_a_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"0.png": "not a picture", "1.png": 3})
    with pytest.raises(InputError, match=r"0\.png"):
        read_picture(tmp_path / "0.png")
    with pytest.raises(InputError, match=r"2\.png"):
        read_picture(tmp_path / "2.png")
    damaged = (tmp_path / "1.png").read_bytes()[:45]
    (tmp_path / "3.png").write_bytes(damaged)
    with pytest.raises(InputError, match=r"3\.png"):
        read_picture(tmp_path / "3.png")
    monkeypatch.setattr(pixels, "MOST_PIXELS", 3)
    with pytest.raises(InputError, match="too large"):
        read_picture(tmp_path / "1.png")
    for limit in (1, 3):  # Pillow's own warning and error
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InputError):
            read_picture(tmp_path / "1.png")


def test_text_that_is_none(tmp_path: Path) -> None:
    write(tmp_path / "1", {"inputs/text.txt": "a"})
    (tmp_path / "1/inputs/text.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"text\.txt"):
        TaskData(tmp_path / "1")


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    write(tmp_path / "1", {"inputs/images/0.png": 1})
    (tmp_path / "1/inputs/questions.txt").symlink_to(secret)
    with pytest.raises(InputError, match="leads out"):
        TaskData(tmp_path / "1")
    Image.new("L", (1, 1)).save(tmp_path / "secret.png")
    write(tmp_path / "2", {"inputs/images/0.png": 1})
    (tmp_path / "2/inputs/images/1.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InputError, match="leads out"):
        TaskData(tmp_path / "2")
    # The folder of a task, too.
    write(tmp_path / "all", ORIGINAL)
    (tmp_path / "all" / "5").symlink_to(tmp_path / "1")
    with pytest.raises(InputError, match="5: it leads out"):
        read_data(tmp_path / "all")


def test_other_pixels_are_other_data(tmp_path: Path) -> None:
    (tmp_path / "0" / "inputs" / "images").mkdir(parents=True)
    file = tmp_path / "0" / "inputs" / "images" / "0.bmp"
    seen = []
    for gray in (1, 2, 1):  # a file of always the same size
        Image.new("L", (2, 2), gray).save(file)
        seen.append(data_identity(read_data(tmp_path)))
    assert seen[0] == seen[2] != seen[1]
