"""``formal-llm lsp``; the server itself is tested with the editors."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from formal_llm.cli.main import app


def test_without_pygls_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.delitem(sys.modules, "formal_llm.editors.server", raising=False)
    done = CliRunner().invoke(app, ["lsp"])
    assert done.exit_code == 2
    assert 'pip install "formal-llm[lsp]"' in done.stderr
