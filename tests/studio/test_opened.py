"""The file that the studio was opened with."""

from dataclasses import replace
from pathlib import Path

import pytest

from formal_llm.errors import FormalLLMError, NotationError, ResourceNotFound
from formal_llm.studio.opened import Changed, Opened
from formal_llm.studio.rules import read


def test_without_a_file_there_is_an_example_that_can_be_read() -> None:
    opened = Opened.of(None)
    assert opened.path is None
    assert not read(opened.text, opened.ending).warnings
    with pytest.raises(FormalLLMError, match="not opened with a file"):
        opened.save("x", "")


def test_shipped_rules_are_opened_as_a_copy() -> None:
    opened = Opened.of("react")
    assert (opened.path, opened.name, opened.ending) == (None, "react.agent", ".agent")
    with pytest.raises(ResourceNotFound, match="react"):
        Opened.of("reakt")


def test_a_new_file_is_made_when_it_is_saved(tmp_path: Path) -> None:
    opened = Opened.of(str(tmp_path / "new.cfg"))
    assert opened.text == ""
    version = opened.save("S -> a\n", "")
    assert (tmp_path / "new.cfg").read_text() == "S -> a\n"
    with pytest.raises(Changed):
        opened.save("S -> b\n", "")
    opened.save("S -> b\n", version)
    assert [file.name for file in tmp_path.iterdir()] == ["new.cfg"]


def test_rights_and_line_ends_stay(tmp_path: Path) -> None:
    file = tmp_path / "g.cfg"
    file.write_bytes(b"S -> a\r\nA -> b\r\n")
    file.chmod(0o640)
    opened = Opened.of(str(file))
    opened.save("S -> a\nA -> c\n", opened.version)
    assert file.read_bytes() == b"S -> a\r\nA -> c\r\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.cfg").write_text("S -> a\n")
    link = tmp_path / "link.cfg"
    link.symlink_to("real.cfg")
    opened = Opened.of(str(link))
    opened.save("S -> b\n", opened.version)
    assert link.is_symlink()
    assert (tmp_path / "real.cfg").read_text() == "S -> b\n"


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FormalLLMError, match="ending tells the notation"):
        Opened.of(str(tmp_path / "a.txt"))
    with pytest.raises(FormalLLMError, match="there is no folder"):
        Opened.of(str(tmp_path / "none" / "a.cfg"))
    (tmp_path / "b.cfg").write_bytes(b"\xff")
    with pytest.raises(NotationError, match="UTF-8"):
        Opened.of(str(tmp_path / "b.cfg"))


def test_a_procedure_is_opened(tmp_path: Path) -> None:
    (tmp_path / "my.procedure").write_text("check look(x)\n")
    assert Opened.of(str(tmp_path / "my.procedure")).ending == ".procedure"


def test_a_followed_run_is_empty_until_its_file_is_there(tmp_path: Path) -> None:
    opened = replace(Opened.of(None), followed=tmp_path / "run.journal")
    assert opened.read_followed() == ""
    (tmp_path / "run.journal").write_text("a line\n")
    assert opened.read_followed() == "a line\n"
    with pytest.raises(FormalLLMError, match="--follow"):
        Opened.of(None).read_followed()
