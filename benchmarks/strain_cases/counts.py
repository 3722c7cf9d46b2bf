"""How many plans there are, where the rules do not tell at once that each plan comes about in one way."""

from __future__ import annotations

import tempfile
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.strain_cases.case import Case, milliseconds
from formal_llm import CFG, Lookahead
from formal_llm.cli.main import app
from formal_llm.errors import Undecided

#: Ten tools with types; one of them works in two ways.
TYPED = """
%limit 1
S -> T | I | N
T -> caption I | translate T | answer I T | merge T T | report N T | text
I -> colorize I | denoise x I | denoise y I | generate T | plot N | image
N -> detect I | measure I N | number
"""

#: The same with the tools behind what they take, as in a plan from the first step to the last.
POSTFIX = """
%limit 1
S -> T | I | N
T -> I caption | T translate | I T answer | T T merge | N T report | text
I -> I colorize | I denoise x | I denoise y | T generate | N plot | image
N -> I detect | I N measure | number
"""


def _checked(text: str) -> dict[str, float | str]:
    lookahead = Lookahead(CFG.from_string(text))
    figures: dict[str, float | str] = {}

    def count() -> None:
        try:
            figures["plans"] = f"{lookahead.count():,}"
        except Undecided:
            figures["plans"] = "undecided"

    figures["count"] = milliseconds(count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "typed.cfg")
        path.write_text(text, encoding="utf-8")
        figures["check"] = milliseconds(lambda: CliRunner().invoke(app, ["check", str(path)]))
    return figures


CASES = [
    Case("A -> f x | f y among ten typed tools", "1,000 ms, counted", lambda: _checked(TYPED)),
    Case("I -> I f | I f x | image, ten typed tools", "1,000 ms, counted", lambda: _checked(POSTFIX)),
]
