"""What a person reads of broken inputs, to the letter: the table is ``broken.txt``, beside this file."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, constraint
from formal_llm.automata.models.limits import SumLimit
from formal_llm.errors import GrammarWarning
from formal_llm.planning.packs import apply_limits

TABLE = Path(__file__).with_name("broken.txt")
RULES = CFG.from_string("%order forward\nS -> shop S | lunch\nshop time=45min cost=€5\nlunch time=1h")


def _limits_of_a_pack(text: str) -> object:
    return apply_limits(RULES, tomllib.loads(text))


def _code(text: str) -> object:
    return eval(text, {"SumLimit": SumLimit, "CFG": CFG})


READERS: dict[str, Callable[[str], object]] = {
    "cfg": CFG.from_string,
    "pda": PDA.from_string,
    "mmd": Flowchart.from_string,
    "agent": Behaviour.from_string,
    "formula": lambda text: constraint(text, ["a", "b"]),
    "letters": CFG.from_letters,
    "limits of a pack": _limits_of_a_pack,
    "code": _code,
}


class Broken(NamedTuple):
    """An input, and what is said of it."""

    notation: str
    text: str
    said: str


def table() -> list[Broken]:
    """The rows of the table."""
    blocks = re.split(r"^=== (.*)\n", TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    rows = []
    for notation, block in zip(blocks[::2], blocks[1::2], strict=True):
        text, _, said = block.partition("---\n")
        rows.append(Broken(notation, text.rstrip("\n"), said.rstrip("\n")))
    return rows


def said_of(notation: str, text: str) -> str:
    """The error, or the warnings, that an input gets."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        try:
            READERS[notation](text)
        except (ValueError, TypeError) as error:
            return str(error)
    return "\n".join(f"warning: {one.message}" for one in caught)


@pytest.mark.parametrize("row", table(), ids=lambda row: f"{row.notation}: {row.text!r}"[:60])
def test_the_message_is_this(row: Broken) -> None:
    assert said_of(row.notation, row.text) == row.said


def test_the_table_is_long_and_covers_every_notation() -> None:
    rows = table()
    assert len({(row.notation, row.text) for row in rows}) == len(rows) >= 60
    assert {row.notation for row in rows} == set(READERS)
    assert all(row.said for row in rows)


if __name__ == "__main__":
    head = TABLE.read_text(encoding="utf-8").split("\n===")[0].rstrip("\n") + "\n"
    shown = (f"=== {row.notation}\n{row.text}\n---\n{said_of(row.notation, row.text)}\n" for row in table())
    TABLE.write_text("\n".join([head, *shown]), encoding="utf-8")
