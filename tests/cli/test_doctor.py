"""``formal-llm doctor``."""

from __future__ import annotations

from tests.cli.inside import runner
from tests.llms.hosted.test_doctor import EVERYTHING, gateway

doctor = runner("doctor")


def test_what_is_printed() -> None:
    with gateway(EVERYTHING - {"stops"}) as url:
        code, printed, _ = doctor(url)
    assert code == 0
    lines = printed.splitlines()
    assert "yes      models are listed: small" in lines
    assert "ignored  stops: one two three" in lines
    assert lines[-1].startswith("- use vllm:MODEL")


def test_a_server_that_is_not_there() -> None:
    code, _, said = doctor("http://127.0.0.1:9/v1")
    assert code == 3
    assert "127.0.0.1:9" in said
