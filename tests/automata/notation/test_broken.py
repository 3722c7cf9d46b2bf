"""What cannot be read: each input of ``broken.txt`` with the exact text that a person sees, and any damage."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, authored, constraint
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.notation.files import ENDINGS, read_rules_text
from formal_llm.automata.notation.sentences import read_sentences
from formal_llm.errors import GrammarWarning, NotationError
from formal_llm.planning.packs import apply_limits
from tests.automata.messages import check_place, quiet
from tests.strategies import examples

TABLE = Path(__file__).with_name("broken.txt")
RULES = CFG.from_string("%order forward\nS -> shop S | lunch\nshop time=45min cost=€5\nlunch time=1h")
READERS: dict[str, Callable[[str], object]] = {
    "cfg": CFG.from_string,
    "pda": PDA.from_string,
    "mmd": Flowchart.from_string,
    "agent": Behaviour.from_string,
    "rules": read_sentences,
    "formula": lambda text: constraint(text, ["a", "b"]),
    "letters": CFG.from_letters,
    "limits of a pack": lambda text: apply_limits(RULES, tomllib.loads(text)),
    "code": lambda text: eval(text, {"SumLimit": SumLimit, "CFG": CFG}),
}


class Broken(NamedTuple):
    """An input, and what is said of it."""

    notation: str
    text: str
    said: str


def read_table() -> list[Broken]:
    """The rows of the table."""
    blocks = re.split(r"^=== (.*)\n", TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    rows = []
    for notation, block in zip(blocks[::2], blocks[1::2], strict=True):
        text, said = f"\n{block}".rsplit("\n---\n", 1)
        rows.append(Broken(notation, text[1:], said.rstrip("\n")))
    return rows


def describe(notation: str, text: str) -> str:
    """The error, or the warnings, that an input gets. The caret of an error stands under its place."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        try:
            READERS[notation](text)
        except (ValueError, TypeError) as error:
            if isinstance(error, NotationError):
                check_place(error)
            return str(error)
    return "\n".join(f"warning: {one.message}" for one in caught)


@pytest.mark.parametrize("row", read_table(), ids=lambda row: f"{row.notation}: {row.text!r}"[:60])
def test_the_message_is_this(row: Broken) -> None:
    assert describe(row.notation, row.text) == row.said


def test_the_table_covers_every_notation() -> None:
    rows = read_table()
    assert len({(row.notation, row.text) for row in rows}) == len(rows)
    assert {row.notation for row in rows} == set(READERS)
    assert all(row.said for row in rows)


#: What is damaged: the shipped rules and what is broken already, each with its ending.
WHOLE = [
    *((path.suffix, path.read_text(encoding="utf-8"))
      for kind in ("grammars", "agents")
      for path in (authored.find(kind, name, ENDINGS) for name in authored.names(kind))),
    *((f".{row.notation}", row.text) for row in read_table() if f".{row.notation}" in ENDINGS),
]  # fmt: skip
PIECES = ["->", "→", "::=", "-->", "|", "some(", "(", ")", ",", '"', "'", "\\", "#", "%", "%limit", "ε", "=", "<=",
          "\n", "\t", " ", "\0", "\u2028", "\x85", "9" * 30, "a", "é", "\ufeff", "\r", "{", "}", "[", "]", "*", "&",
          "@{", "<", "end", " for t in", "1..", ";", "%rule a before b", "--"]  # fmt: skip


@given(st.sampled_from(ENDINGS), st.data())
@examples(400)
def test_whatever_is_read_rules_or_an_error_with_a_place_come_out(ending: str, data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from([text for one, text in WHOLE if one == ending or (one, ending) == (".mmd", ".mermaid")])
    )
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.sampled_from([0, 0, 1, 2, 8]))
        text = text[:at] + data.draw(st.sampled_from(["", *PIECES])) + text[at + cut :]
    with quiet():
        try:
            rules = read_rules_text(text, f"some{ending}")
        except NotationError as error:
            assert str(error).startswith(f"some{ending}:")
            check_place(error)
        else:
            assert type(rules).from_string(str(rules)) == rules or ending == ".rules"


if __name__ == "__main__":
    head = TABLE.read_text(encoding="utf-8").split("\n===")[0].rstrip("\n") + "\n"
    shown = (f"=== {row.notation}\n{row.text}\n---\n{describe(row.notation, row.text)}\n" for row in read_table())
    TABLE.write_text("\n".join([head, *shown]), encoding="utf-8")
