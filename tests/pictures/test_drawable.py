"""What has a picture."""

import subprocess
import sys

import pytest

from formal_llm import CFG, PDA, MissingDependency
from tests.pictures.forms import check_dot, check_mermaid, needs_dot


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, openagi: CFG) -> None:
    monkeypatch.setenv("PATH", "")
    for drawn in (openagi, PDA.from_cfg(openagi)):
        with pytest.raises(MissingDependency, match=r"install Graphviz.*Mermaid or DOT") as caught:
            drawn.to_svg()
        assert "\n" not in str(caught.value)
        with pytest.raises(MissingDependency, match="a PNG picture needs"):
            drawn.to_png()
        assert drawn._repr_svg_() is None
        check_mermaid(drawn.to_mermaid())
        check_dot(drawn.to_dot())


def test_networkx_is_imported_late() -> None:
    code = "import sys, formal_llm; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_dot
def test_png(openagi: CFG) -> None:
    assert openagi.to_png().startswith(b"\x89PNG\r\n")
