"""Drafts of rules: found in the text of a model, read, and checked for problems that the author should know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from warnings import catch_warnings

from formal_llm.authored.files import lines_of
from formal_llm.automata import CFG, PDA, Behaviour, Flowchart, Lookahead
from formal_llm.automata.languages.emptiness import find_unused_terminals, why_empty
from formal_llm.automata.languages.grammar_warnings import warn_of_similar_steps
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.errors import AutomatonError, FormalLLMError, NotationError, Undecided

#: The notations by their file extensions.
KINDS: dict[str, type[Rules]] = {".cfg": CFG, ".mmd": Flowchart, ".pda": PDA, ".agent": Behaviour}
#: The names that models write after a fence, and their notations.
_FENCES = {
    "cfg": ".cfg", "grammar": ".cfg", "bnf": ".cfg", "ebnf": ".cfg", "mermaid": ".mmd", "mmd": ".mmd",
    "flowchart": ".mmd",
    "pda": ".pda", "agent": ".agent", "lisp": ".agent", "scheme": ".agent", "clojure": ".agent", "commonlisp": ".agent",
}  # fmt: skip
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*\1`*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SIGNS = (
    (re.compile(r"\(define\b"), ".agent"),
    (re.compile(r"^\s*(?:flowchart|graph)\b", re.MULTILINE), ".mmd"),
    (re.compile(r"^[^\n#|]*,[^\n#|]*,[^\n#|]*(?:->|→)", re.MULTILINE), ".pda"),
    (re.compile(r"->|→|::=|^\s*[\w-]+\s*(?:=>|:=|=)\s*\S", re.MULTILINE), ".cfg"),
)
#: Lines that are certainly rules of a grammar or an automaton, if there is prose around them.
_RULE = re.compile(
    r"^\s*(?:%\w|#|\||[^\s.:]+(?:\s+\"[^\"]*\")*\s*(?:->|→|::=)|[^\s,]+,[^,]*,.*(?:->|→))|^\s*[\w-]+\s+(?:\"[^\"]*\"|\w+=\S)"
)


@dataclass(frozen=True)
class Draft:
    """A checked draft of rules.

    Attributes:
        text: the text of the rules.
        ending: the file extension of their notation; empty if none was recognised.
        rules: the rules; None if they cannot be read.
        problems: reasons why they are unusable: they cannot be read, or no plan satisfies them.
        doubts: possible mistakes: warnings, parts that no plan uses.
    """

    text: str
    ending: str
    rules: Rules | None = None
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def source(self) -> CFG | PDA:
        """The rules in the form that a planner uses; the placeholders of a flowchart are in braces.

        Raises:
            ValueError: the draft is unusable.
        """
        if self.rules is None:
            raise ValueError("the draft cannot be read")
        return _source_of(self.rules)


def _source_of(rules: Rules) -> CFG | PDA:
    names = rules.placeholders if isinstance(rules, Flowchart) else ()
    return automaton_of(rules, {name: f"{{{name}}}" for name in names})


def check_draft(text: str, ending: str, *, max_states: int = 20_000) -> Draft:
    """Check the text of rules and return it with its problems and doubts.

    Args:
        text: the rules.
        ending: the notation: one of :data:`KINDS`.
        max_states: the budget of each question about the language.
    """
    with catch_warnings(record=True, action="always") as caught:
        try:
            rules = KINDS[ending].from_string(text)
            source = _source_of(rules)
        except FormalLLMError as error:
            return Draft(text, ending, problems=(_error_text(error),))
    doubts = [str(one.message).removeprefix("<string>:") for one in caught]
    lookahead = Lookahead(source, max_states=max_states)
    try:
        if lookahead.completable().value == "no":
            reason = why_empty(source, max_states=max_states).reason
            return Draft(text, ending, rules, (f"there is no plan at all: {reason}",), tuple(doubts))
        never, _ = find_unused_terminals(lookahead, max_states)
    except (Undecided, AutomatonError):
        never = []
    if isinstance(rules, Behaviour):  # its automaton has only the reachable states
        never += [name for name in rules.states if name not in source.terminals]
    doubts += warn_of_similar_steps(source.terminals, source.label)
    if never:
        doubts.append(f"no plan uses {', '.join(never)}")
    return Draft(text, ending, rules, (), tuple(dict.fromkeys(doubts)))


def _error_text(error: FormalLLMError) -> str:
    return str(error).removeprefix("<string>:") if isinstance(error, NotationError) else str(error)


def draft_of(reply: str, ending: str | None = None) -> Draft:
    """Extract the draft from a model's reply, with or without fences and surrounding prose.

    Of several pieces, return the last usable one, since corrections follow what they correct; if none is usable, the
    last one.

    Args:
        reply: the reply of the model.
        ending: the requested notation; default: recognised from the text.
    """
    drafts: list[Draft] = []
    for text, fence in _find_rules(reply):
        notation = ending or _FENCES.get(fence.lower()) or notation_of(text)
        if notation is not None:
            drafts.append(check_draft(text, notation))
    if not drafts:
        expected = f"a {ending} file" if ending else "a grammar, a flowchart, an automaton or a behaviour"
        return Draft(
            reply.strip(),
            ending or "",
            problems=(f"there are no rules in the answer; write {expected} between ``` and ```",),
        )
    usable = [one for one in drafts if not one.problems]
    return (usable or drafts)[-1]


def notation_of(text: str) -> str | None:
    """Return the file extension of the notation that a text appears to have; None if it has none."""
    return next((ending for sign, ending in _SIGNS if sign.search(text)), None)


def _find_rules(reply: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a reply that may be rules, each with the word after its fence."""
    fenced = list(_FENCE.finditer(reply))
    for match in fenced:
        yield match[3].strip("\n") + "\n", match[2]
    if fenced:
        return
    text = reply.strip()
    kind = notation_of(text)
    if kind == ".agent":
        yield _cut_balanced(text[text.index("(define") :]), ""
    elif kind == ".mmd":
        begin = re.search(r"^\s*(?:flowchart|graph)\b", text, re.MULTILINE)
        rest = text[begin.start() if begin else 0 :]
        yield rest.split("\n\n")[0].strip("\n") + "\n", ""
    elif kind is not None:
        lines = lines_of(text)
        kept = [number for number, line in enumerate(lines) if _RULE.match(line)]
        whole = "\n".join(lines[kept[0] : kept[-1] + 1]) if kept else text
        # There may also be prose inside: then keep only the lines that are certainly rules.
        yield (
            (whole if not _has_problem(whole, kind) else "\n".join(lines[number] for number in kept) or text) + "\n",
            "",
        )


def _has_problem(text: str, ending: str) -> bool:
    with catch_warnings(action="ignore"):
        try:
            KINDS[ending].from_string(text + "\n")
        except FormalLLMError:
            return True
    return False


def _cut_balanced(text: str) -> str:
    """Return a text up to the parenthesis that closes its first one, or to its end if none does."""
    depth, quoted, at = 0, False, 0
    for at, sign in enumerate(text):
        if sign == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted and sign in "()":
            depth += 1 if sign == "(" else -1
            if not depth:
                break
    return text[: at + 1] + "\n"
