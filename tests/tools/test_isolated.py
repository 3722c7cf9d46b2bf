"""Tools in processes of their own: what hangs is killed, what dies is an error."""

from __future__ import annotations

import os
import time

import pytest

from formal_llm import CFG
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.tools import Executor, Toolkit
from formal_llm.tools.isolated import isolated
from tests.tools.picture_tools import picture, plan_of


def run(name: str, given: object = "a", **settings: float) -> object:
    apart = isolated(f"tests.tools.isolated_tools:{name}", **settings)  # type: ignore[arg-type]
    plan = plan_of(CFG.from_string(f"%order prefix\nT -> {name} it"), name, "it")
    return Executor(Toolkit([apart])).run(plan, {"it": given}).output


@pytest.mark.slow
def test_what_hangs_is_killed_and_what_dies_is_an_error() -> None:
    assert int(str(run("who"))) != os.getpid()
    photo = picture()
    assert run("flip", photo).tobytes() == photo.rotate(180).tobytes()  # type: ignore[attr-defined]
    begin = time.monotonic()
    for name, settings, reason, words in (
        ("hang", {"timeout": 5}, "timeout", "did not return within 5 seconds"),
        ("die", {}, "failed", "BrokenWorkerProcess"),
        ("fail", {}, "failed", "ValueError: not a"),
        ("eat", {"memory": 20_000_000_000}, "memory", "ran out of memory"),
    ):
        with pytest.raises(ToolError, match=words) as caught:
            run(name, **settings)  # type: ignore[arg-type]
        assert caught.value.reason == reason
    assert time.monotonic() - begin < 50
    with pytest.raises(ToolkitError, match="there is no tool"):
        isolated("tests.tools.isolated_tools:nothing")
