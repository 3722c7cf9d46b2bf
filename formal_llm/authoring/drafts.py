"""Drafts of rules: found in the text of a model, read, and checked for problems that the author should know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from warnings import catch_warnings

from formal_llm.automata import CFG, PDA, Behaviour, Flowchart, Lookahead
from formal_llm.automata.languages.emptiness import find_unused_terminals, why_empty
from formal_llm.automata.languages.grammar_warnings import warn_of_similar_steps
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.errors import AutomatonError, FormalLLMError, NotationError, Undecided

#: The notations in which rules are drafted.
ENDINGS = (".rules", ".cfg", ".mmd", ".pda", ".agent")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*\1`*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE_WORDS = {**{ending[1:]: ending for ending in ENDINGS}, "mermaid": ".mmd"}


@dataclass(frozen=True)
class Draft:
    """A checked draft of rules.

    Attributes:
        text: the text of the rules.
        ending: the file extension of their notation; empty if the answer does not name one.
        rules: the rules; None if they cannot be read.
        problems: reasons why they are unusable: they cannot be read, or no plan satisfies them.
        warnings: possible mistakes: what reading warns of, steps that no plan uses.
    """

    text: str
    ending: str
    rules: Rules | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def source(self) -> CFG | PDA:
        """The rules in the form that a planner uses; the placeholders of a flowchart are in braces.

        Raises:
            ValueError: the draft cannot be read.
        """
        if self.rules is None:
            raise ValueError("the draft cannot be read")
        names = self.rules.placeholders if isinstance(self.rules, Flowchart) else ()
        return automaton_of(self.rules, {name: f"{{{name}}}" for name in names})


def check_draft(text: str, ending: str, *, max_states: int = 20_000) -> Draft:
    """Check the text of rules and return it with its problems and warnings.

    Args:
        text: the rules.
        ending: the notation: one of :data:`ENDINGS`.
        max_states: the budget of each question about the language.
    """
    file = f"draft{ending}"
    with catch_warnings(record=True, action="always") as caught:
        try:
            draft = Draft(text, ending, read_rules_text(text, file))
            source = draft.source
        except FormalLLMError as error:
            said = str(error).removeprefix(f"{file}:") if isinstance(error, NotationError) else str(error)
            return Draft(text, ending, problems=(said,))
    warnings = [str(one.message).removeprefix(f"{file}:") for one in caught]
    lookahead = Lookahead(source, max_states=max_states)
    try:
        if lookahead.completable().value == "no":
            reason = why_empty(source, max_states=max_states).reason
            return Draft(text, ending, draft.rules, (f"there is no plan at all: {reason}",), tuple(warnings))
        never, _ = find_unused_terminals(lookahead, max_states)
    except (Undecided, AutomatonError):
        never = []
    if isinstance(draft.rules, Behaviour):  # its automaton has only the reachable states
        never += [name for name in draft.rules.states if name not in source.terminals]
    warnings += warn_of_similar_steps(source.terminals, source.label)
    if never:
        warnings.append(f"no plan uses {', '.join(never)}")
    return Draft(text, ending, draft.rules, (), tuple(dict.fromkeys(warnings)))


def read_draft(reply: str, ending: str | None = None) -> Draft:
    """Read the draft in a model's reply: its last fenced block, or without any fence the whole reply.

    Args:
        reply: the reply of the model.
        ending: the requested notation; where it is left out, the word after the fence names it.
    """
    blocks = _FENCE.findall(reply)
    word, text = (blocks[-1][1], blocks[-1][2]) if blocks else ("", reply)
    text = text.strip("\n") + "\n"
    notation = ending or _FENCE_WORDS.get(word.lower())
    if notation is None or not text.strip():
        names = ending[1:] if ending else ", ".join(_FENCE_WORDS)
        return Draft(
            text.strip(), "", problems=(f"there are no rules in the answer: write them between ``` and ```, with the "
            f"name of the notation after the first ``` ({names})",),
        )  # fmt: skip
    return check_draft(text, notation)
