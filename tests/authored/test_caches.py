"""Where what was computed once is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.authored.caches import user_cache


def test_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/caches")
    assert user_cache() == Path("/somewhere/caches/formal-llm")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_cache() == Path("/home/somebody/.cache/formal-llm")
