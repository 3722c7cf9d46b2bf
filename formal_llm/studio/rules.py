"""The rules in the editor: read, with what is wrong with them and where, and kept until they change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from warnings import catch_warnings

from formal_llm.automata import CFG, PDA, Lookahead, Word
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.errors import FormalLLMError, NotationError
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.wording import Wording
from formal_llm.procedures import Procedure
from formal_llm.studio.parts import Asked, Part, text_of

#: The budget of states of a question about the rules.
MAX_STATES = 20_000
#: The endings of procedures and of guards' rules, which are no rules of plans.
PROCEDURE, GUARD = ".procedure", ".guard"
#: What messages call the text in the editor.
NAME = "rules"
_PLACE = re.compile(rf"{NAME}(?:\.\w+)?(?::(\d+)(?::(\d+))?)?: ", re.DOTALL)


@dataclass(frozen=True)
class ReadRules:
    """Rules that could be read.

    Attributes:
        rules: as they are written.
        source: what a planner walks; a chart's placeholders are written in braces.
        warnings: what is probably not meant, as the page receives it.
    """

    rules: Rules
    source: CFG | PDA
    warnings: tuple[Part, ...]

    @cached_property
    def table(self) -> ChoiceTable:
        """The choices, shared by all walks over these rules."""
        return ChoiceTable.of(self.source, max_states=MAX_STATES)

    @property
    def lookahead(self) -> Lookahead:
        """What can be completed."""
        return self.table.lookahead

    @cached_property
    def wording(self) -> Wording:
        """How questions are put."""
        return Wording().settled(self.table)

    def word(self, word: Sequence[str]) -> Part:
        """A word as the page shows it."""
        label = self.lookahead.automaton.label
        return {"names": list(word), "labels": [label(name) for name in word]}

    def shown(self, word: Word | None) -> Part | None:
        """A word as the page shows it; None for none."""
        return None if word is None else self.word(word)


@lru_cache(maxsize=4)
def read(text: str, ending: str) -> ReadRules:
    """The rules that a text holds.

    Raises:
        FormalLLMError: it cannot be read.
    """
    with catch_warnings(record=True, action="always") as caught:
        rules = read_rules_text(text, NAME + ending)
        names = rules.placeholders if isinstance(rules, Flowchart) else ()
        source = automaton_of(rules, {name: f"{{{name}}}" for name in names})
    messages = dict.fromkeys(str(one.message) for one in caught)
    return ReadRules(rules, source, tuple(_build_warning(message) for message in messages))


def asked_rules(asked: Asked, name: str = "text") -> ReadRules:
    """The rules that are asked about; ``name`` is that of their text.

    Raises:
        FormalLLMError: they cannot be read.
        BadQuestion: there are none.
    """
    return read(text_of(asked, name), ending_of(asked))


def asked_procedure(asked: Asked) -> Procedure:
    """The procedure that is asked about.

    Raises:
        FormalLLMError: it cannot be read.
        BadQuestion: there is none.
    """
    return Procedure.from_string(text_of(asked, "text"), file=NAME + PROCEDURE)


def ending_of(asked: Asked) -> str:
    """The ending of what is asked about, which determines its notation."""
    return text_of(asked, "ending", ".cfg")


def _build_warning(message: str) -> Part:
    place = _PLACE.match(message)
    line, column = (None, None) if place is None else place.groups()
    return build_problem("warning", message[place.end() :] if place else message, line, column)


def problem(error: FormalLLMError) -> Part:
    """An error as the page shows it: what is wrong, where, and the way out."""
    if not isinstance(error, NotationError):
        return build_problem("error", str(error))
    expected = f"expected: {', '.join(error.expected)}" if error.expected else ""
    way_out = "\n".join(filter(None, (expected, error.suggestion or "")))
    return build_problem("error", error.problem, error.line, error.column) | {"way_out": way_out}


def build_problem(kind: str, message: str, line: str | int | None = None, column: str | int | None = None) -> Part:
    """Build a problem as the page shows it; ``kind`` is ``"error"`` or ``"warning"``."""
    return {
        "kind": kind, "message": message, "line": None if line is None else int(line),
        "column": None if column is None else int(column), "way_out": "",
    }  # fmt: skip
