"""The text of rules as an editor sees it: what is wrong where, and what a name means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from warnings import catch_warnings

from formal_llm.automata import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.how_many import count_plans
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.rules import Rules
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.editors.names import Names
from formal_llm.errors import FormalLLMError, GrammarWarning, NotationError, Undecided
from formal_llm.guard.rules.reading import read_rules as read_guard

#: With more productions plans are not counted while somebody points at a name.
_MOST = 2_000
#: How many productions of a symbol are shown.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class DocumentFinding:
    """Something wrong, or that looks wrong; lines and columns are counted from 0."""

    line: int
    column: int
    end: int
    severity: Literal["error", "warning"]
    message: str


class Document:
    """A text of rules.

    Args:
        text: the text.
        file: the file that it is, or is to be, in; its ending tells the notation, and imports are relative to it.
        before: the document as it was: while the text cannot be read, names mean what they meant then.
    """

    def __init__(self, text: str, file: str | Path, before: Document | None = None) -> None:
        self.text = text
        self.file = Path(file)
        self.names = Names(text, self.file)
        self.rules: Rules | None = None
        self.findings: tuple[DocumentFinding, ...] = tuple(self._read())
        if self.rules is None and before is not None:
            self.rules = before.rules

    def _read(self) -> list[DocumentFinding]:
        """Read the rules; what is told of them."""
        found = []
        with catch_warnings(record=True, action="always") as caught:
            try:
                if self.file.suffix == ".guard":
                    read_guard(self.text, str(self.file))
                else:
                    self.rules = read_rules_text(self.text, self.file)
            except NotationError as error:
                said = [error.problem, *([f"expected: {', '.join(error.expected)}"] if error.expected else [])]
                said += [error.suggestion] if error.suggestion else []
                found.append(self._finding(error, "error", "\n".join(said)))
            except (FormalLLMError, ValueError) as error:
                found.append(DocumentFinding(0, 0, 1, "error", str(error)))
        warned = [one.message for one in caught if isinstance(one.message, GrammarWarning)]
        return found + [self._finding(one, "warning", one.problem) for one in warned]

    def _finding(
        self, told: NotationError | GrammarWarning, severity: Literal["error", "warning"], said: str
    ) -> DocumentFinding:
        lines = self.text.split("\n")
        if told.file is not None and told.file != str(self.file):
            # It is told where the other file is imported.
            place = "" if told.line is None else f":{told.line}:{told.column}"
            other = Path(told.file).resolve()
            named = {number: self.names.imported_at(number) for number in range(len(lines))}
            line = next((n for n, path in named.items() if path == other), None)
            line = next((n for n, path in named.items() if path), 0) if line is None else line
            return DocumentFinding(line, 0, len(lines[line]), severity, f"{told.file}{place}: {said}")
        line = min((told.line or 1) - 1, len(lines) - 1)
        column = min((told.column or 1) - 1, len(lines[line]))
        name = self.names.at(line, column)
        return DocumentFinding(
            line, column, column + max(1, len(name or "") if column < len(lines[line]) else 1), severity, said
        )

    # -- what names mean ----------------------------------------------------------------------------------------

    def hover(self, line: int, column: int) -> str | None:
        """What is known of the name at a place, as Markdown; None where there is no name."""
        name = self.names.at(line, column)
        if name is None or name not in self.names.used:
            return None
        if isinstance(self.rules, CFG):
            return self._of_grammar(self.rules, name)
        return self._of_automaton(name)

    def _of_grammar(self, cfg: CFG, name: str) -> str | None:
        kind = "nonterminal" if name in cfg.nonterminals else "terminal" if name in cfg.terminals else None
        if kind is None:
            return None
        lines = [f"**{name}** ({'start symbol' if name == cfg.start else kind})", *_described(cfg.symbols.get(name))]
        if kind == "terminal":
            lines += [f"`{one}`" for one in cfg.limits.lines() if name in one.split()]
            return "\n\n".join(lines)
        rules = [str(production) for production in cfg.by_head[name]]
        more = [f"and {len(rules) - _SHOWN} more"] if len(rules) > _SHOWN else []
        lines.append("\n".join(["```", *rules[:_SHOWN], *more, "```"]))
        return "\n\n".join([*lines, *self._counted(cfg, name)])

    def _counted(self, cfg: CFG, name: str) -> list[str]:
        if len(cfg.productions) > _MOST:
            return []
        if name not in self._counts:
            what = "plans" if name == cfg.start else "what it can be, limits aside"
            # What is required of a whole plan is not required of a part.
            own = cfg if name == cfg.start else cfg.with_start(name).with_limits(Limits())
            try:
                self._counts[name] = f"{what}: {count_plans(Lookahead(own)).describe_count('of at most {} terminals')}"
            except Undecided:
                self._counts[name] = f"{what}: too many to count"
        return [self._counts[name]]

    @cached_property
    def _counts(self) -> dict[str, str]:
        return {}

    def _of_automaton(self, name: str) -> str | None:
        lines = [f"**{name}**"]
        if isinstance(self.rules, Behaviour) and name in self.rules.states:
            state = self.rules.states[name]
            lines += ["state", *([state.text] if state.text else []), *sorted(f":{flag}" for flag in state.flags)]
        elif isinstance(self.rules, Flowchart) and name in {node.id for node in self.rules.nodes}:
            node = next(node for node in self.rules.nodes if node.id == name)
            lines += [self.rules.kind(name), *([node.text] if node.text else [])]
        elif isinstance(self.rules, PDA):
            if name in map(str, self.rules.states):
                lines.append("state, " + ("final" if name in map(str, self.rules.accepting_states) else "not final"))
            if name in self.rules.terminals:
                lines += ["terminal", *_described(self.rules.symbols.get(name))]
        return "\n\n".join(lines) if len(lines) > 1 else None


def _described(symbol: Symbol | None) -> list[str]:
    if symbol is None:
        return []
    numbers = ", ".join(f"{quantity} = {amount}" for quantity, amount in symbol.numbers.items())
    return [said for said in (symbol.label, symbol.description, numbers) if said]
