"""Reader of ``.procedure`` files: from a text to a procedure, or to an error with its position and a suggestion.

::

    constant longest = 30

    check find_order(order_id: text) "Looks an order up."
    action verify_customer(email: text, code: text)
        changes nothing
    goal action refund(order_id: text, email: text, amount: number) "Pays an order back."
        all of
            verified(email)
            any of
                recent(order_id)
                damaged(order_id)
            amount <= find_order(order_id).total

    fact verified(email): verify_customer(email, code) is ok until log_out(email)
    fact recent(order_id): find_order(order_id).days <= longest

A line that is indented belongs to the line above it; a condition goes on in lines that are indented further.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError, did_you_mean
from formal_llm.guard.rules.data import Value
from formal_llm.guard.rules.expressions import (
    Connective,
    Constant,
    Expression,
    FieldPath,
    ItemChoice,
    ItemField,
    Negation,
    PastLetter,
)
from formal_llm.guard.rules.functions import FUNCTIONS
from formal_llm.guard.rules.reading import ConditionReader, find_place, load_parser, parse_source
from formal_llm.procedures.procedure import (
    GROUPINGS,
    ConditionNeed,
    Fact,
    FactNeed,
    Grouping,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
    Retraction,
    ToolParameter,
    list_owners,
    walk_terms,
)  # fmt: skip
from formal_llm.procedures.record import as_json
from formal_llm.procedures.terms import CallSucceeds, CallValue

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

#: The types of parameters.
KINDS = ("text", "number", "integer", "boolean", "date", "list", "any")
_STARTS = ("constant", "tool", "fact", "cost", "changes", "flag", "computed", "grouping", "meaning")
#: The words of the notation.
WORDS = (
    "constant", "goal", "check", "action", "fact", "until", "cost", "changes", "idempotent", "approved", "with",
    "all", "any", "in", "order", "none", "first", "of",
)  # fmt: skip
#: The rule of the grammar by the first words of a line; a leaf otherwise.
_HEADS = (
    (r"constant\b", "constant"), (r"(goal|check|action)\b", "tool"), (r"fact\b", "fact"), (r"cost\b", "cost"),
    (r"changes\b", "changes"), (r"(idempotent|approved)\b", "flag"), (r"with\b", "computed"),
    (rf"({'|'.join(GROUPINGS)})\s*(#|$)", "grouping"),
)  # fmt: skip
_TOP = ("constant", "tool", "fact")


@dataclass
class _Line:
    """A line of the file, with those that continue it and those that belong to it."""

    number: int
    indent: int
    texts: list[str]
    kind: str
    children: list[_Line] = field(default_factory=list)
    tree: Tree[Token] = field(init=False)

    @property
    def place(self) -> Place:
        return Place(self.number, self.indent + 1)


def read_procedure(text: str, file: str | None = None) -> Procedure:
    """Read a procedure from a text.

    Messages name the ``file``.

    Raises:
        NotationError: with line, column, a caret, and a suggestion.
    """
    return ProcedureReader(SourceText.from_text(text, file, NotationError)).read()


def _load_parser() -> Lark:
    extension = resources.files("formal_llm.procedures").joinpath("procedure.lark").read_text(encoding="utf-8")
    return load_parser(extension, _STARTS)


class _LeafReader(ConditionReader):
    """A reader of conditions that name facts and the results of calls."""

    def __init__(self, source: SourceText, tools: Mapping[str, ProcedureTool], facts: Mapping[str, int]) -> None:
        super().__init__(source, {})
        self.tools = tools
        self.facts = facts

    def read_condition(self, tree: object, depth: int = 0) -> Expression:
        kind = str(getattr(tree, "data", ""))
        if kind not in ("call_path", "succeeded"):
            return super().read_condition(tree, depth)
        parts = cast("Tree[Token]", tree).children
        if kind == "succeeded":
            call = self.read_condition(parts[0], depth + 1)
            if not isinstance(call, CallValue) or call.steps:
                self._raise_error("'is ok' follows a call of a tool", tree, "write, for instance, log_in(user) is ok")
            return CallSucceeds(call)
        arguments = [part for part in parts[1:] if getattr(part, "data", "") != "step"]
        steps = self._read_steps(parts[1 + len(arguments) :])
        call = self._read_use(parts[0], [self.read_condition(part, depth + 1) for part in arguments])
        if not isinstance(call, CallValue):
            self._raise_error(f"{parts[0]} is a fact, which has no parts", parts[0])
        return CallValue(call.tool, call.given, steps)

    def _read_function_call(self, tree: Tree[Token], depth: int) -> Expression:
        name = str(tree.children[0])
        if name in FUNCTIONS and name not in self.tools and name not in self.facts:
            return super()._read_function_call(tree, depth)
        return self._read_use(tree.children[0], [self.read_condition(part, depth + 1) for part in tree.children[1:]])

    def _read_use(self, token: object, arguments: Sequence[Expression]) -> CallValue | PastLetter:
        name, given = str(token), tuple(arguments)
        if any(isinstance(term, ItemField) for one in given for term in one.walk()):
            self._raise_error(f"{name} of an item: what is called cannot depend on the items of a list", token)
        if name in self.tools:
            parameters = self.tools[name].parameters
            least = sum(not parameter.optional for parameter in parameters)
            if not least <= len(given) <= len(parameters):
                self._raise_error(f"{name} takes {_count_values(least, len(parameters))}, not {len(given)}", token)
            return CallValue(name, given)
        if name in self.facts:
            if len(given) != self.facts[name]:
                self._raise_error(
                    f"{name} is about {_count_values(self.facts[name], self.facts[name])}, not {len(given)}", token
                )
            return PastLetter(name, given)
        way = _suggest_name(name, (*self.tools, *self.facts, *FUNCTIONS), f"declare it: fact {name}(...): ...")
        return self._raise_error(f"unknown tool, fact or function: {name}", token, way)


def _suggest_name(name: str, known: Iterable[str], otherwise: str) -> str:
    near = did_you_mean(name, known)
    return f"did you mean {near}?" if near else otherwise


def _count_values(least: int, most: int) -> str:
    return f"{least} to {most} values" if least != most else f"{least} value{'' if least == 1 else 's'}"


class ProcedureReader:
    """A reader of one file.

    Args:
        lines: its lines, those left empty that declare nothing; all of them count if left out.
    """

    def __init__(self, source: SourceText, lines: list[str] | None = None) -> None:
        self.source = source
        self.lines = source.text.split("\n") if lines is None else lines
        self.tools: dict[str, ProcedureTool] = {}
        self.facts: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self.constants: dict[str, Value] = {}
        #: The leaves of each tool and fact with their places, which messages name.
        self.found: dict[str, list[tuple[Need, Place]]] = defaultdict(list)
        self.leaves = _LeafReader(source, self.tools, self.facts)
        self._owner = ""

    def read(self) -> Procedure:
        """Read the procedure.

        Raises:
            NotationError: with the place.
        """
        blocks = self._read_blocks()
        for block in blocks:
            self._declare(block)
        for block in blocks:
            if block.kind == "constant":
                self._read_constant(block)
        tools = {_get_name(block): self._read_tool(block) for block in blocks if block.kind == "tool"}
        facts = {_get_name(block): self._read_fact(block) for block in blocks if block.kind == "fact"}
        self.add_needs(tools, facts)
        if not tools:
            self.source.fail_at(
                "there are no tools", None, suggestion='write, for instance, goal action refund(order_id) "Pays back."'
            )
        procedure = Procedure(tools, facts, self.constants, Path(self.source.file or "").stem)
        _ProcedureChecker(self, procedure).check()
        return procedure

    def add_needs(self, tools: dict[str, ProcedureTool], facts: dict[str, Fact]) -> None:
        """Add needs that are written elsewhere than in lines; here there are none."""

    # -- lines --------------------------------------------------------------------------------------------------

    def _read_blocks(self) -> list[_Line]:
        top: list[_Line] = []
        above: list[_Line] = []
        for number, text in enumerate(self.lines, 1):
            bare = text.strip()
            if not bare or bare.startswith("#"):
                continue
            if "\t" in text[: len(text) - len(text.lstrip())]:
                self.source.fail_at("a line that is indented by a tab", Place(number, 1), suggestion="use spaces")
            indent = len(text) - len(text.lstrip())
            if above and bare[0] in ")]}":  # it closes what a line above opened
                indent = above[-1].indent + 1
            while above and above[-1].indent >= indent:
                above.pop()
            line = _Line(number, indent, [text], _find_kind(bare))
            if above and above[-1].kind not in ("tool", "fact", "grouping"):
                above[-1].texts += ["" for _ in range(number - above[-1].number - len(above[-1].texts))] + [text]
                continue
            (above[-1].children if above else top).append(line)
            above.append(line)
            self._check_level(line, len(above) == 1)
        for line in top:
            self._parse_line(line)
        return top

    def _check_level(self, line: _Line, is_top: bool) -> None:
        if is_top and line.kind not in _TOP:
            self.source.fail_at(
                "this line belongs to no tool and no fact", line.place,
                suggestion="indent it, or begin it with goal, check, action, fact or constant",
            )  # fmt: skip
        if not is_top and line.kind in _TOP:
            self.source.fail_at(f"a {line.kind} that is indented", line.place, suggestion="begin it at the left")

    def _parse_line(self, line: _Line) -> None:
        last = line.number + len(line.texts) - 1
        piece = SourceText("\n".join(self.source.text.split("\n")[:last]), self.source.file, error=NotationError)
        # What is parsed has the places of the file: empty lines stand for those above it.
        text = "\n" * (line.number - 1) + "\n".join(line.texts)
        parser = _load_parser()
        line.tree = parse_source(piece, lambda one: parser.parse(one, start=line.kind), WORDS, text)
        for child in line.children:
            self._parse_line(child)

    # -- declarations -------------------------------------------------------------------------------------------

    def _declare(self, block: _Line) -> None:
        name = _get_name(block)
        if name in self.places:
            self.source.fail_at(f"a second {name}; the first is in line {self.places[name].line}", block.place)
        self.places[name] = block.place
        if block.kind == "tool":
            parameters = [one for one in block.tree.children if getattr(one, "data", "") == "parameter"]
            self.tools[name] = ProcedureTool(
                name,
                tuple(self._read_parameter(cast("Tree[Token]", one)) for one in parameters),
                acts=any(getattr(one, "type", "") == "ACTION" for one in block.tree.children),
                is_goal=any(getattr(one, "type", "") == "GOAL" for one in block.tree.children),
                description=_find_text(block.tree),
            )
            names = [parameter.name for parameter in self.tools[name].parameters]
            if len(set(names)) < len(names):
                self.source.fail_at(f"{name} has a parameter twice", block.place)
        elif block.kind == "fact":
            self.facts[name] = len(_find_names(block.tree)) - 1

    def _read_parameter(self, tree: Tree[Token]) -> ToolParameter:
        name, *rest = tree.children
        kind: str | tuple[str, ...] = "any"
        optional, default = False, None
        for part in rest:
            if getattr(part, "data", "") == "kind":
                kind = self._read_kind(cast("Tree[Token]", part))
            else:
                constant = ConditionReader(self.source, {}).read_condition(part)
                if not isinstance(constant, Constant):
                    self.source.fail_at("a default is a value", find_place(name))
                optional, default = True, as_json(constant.value)
        return ToolParameter(str(name), kind, optional, default)

    def _read_kind(self, tree: Tree[Token]) -> str | tuple[str, ...]:
        tokens = cast("list[Token]", tree.children)
        if tokens[0].type == "STRING":
            return tuple(unquote_text(str(token)) for token in tokens)
        kind = str(tokens[0])
        if kind not in KINDS:
            way = _suggest_name(kind, KINDS, f"types are {', '.join(KINDS)}, or allowed texts")
            self.source.fail_at(f"unknown type: {kind}", find_place(tokens[0]), suggestion=way)
        return kind

    def _read_constant(self, block: _Line) -> None:
        value = self.leaves.read_condition(block.tree.children[1])
        if not isinstance(value, Constant):
            self.source.fail_at("a constant is a number, a text, a date or a duration", block.place)
        self.constants[_get_name(block)] = value.value

    # -- bodies -------------------------------------------------------------------------------------------------

    def _read_tool(self, block: _Line) -> ProcedureTool:
        tool = self.tools[_get_name(block)]
        self._owner = tool.name
        settings: dict[str, Any] = {}
        needs: list[Need] = []
        computed: list[tuple[str, Expression]] = []
        for line in block.children:
            match line.kind:
                case "cost":
                    settings["cost"] = float(str(line.tree.children[0]))
                case "changes":
                    settings["changes"] = self._read_changes(line)
                case "flag":
                    settings[str(line.tree.children[0])] = True
                case "computed":
                    name = str(line.tree.children[0])
                    if name not in {parameter.name for parameter in tool.parameters}:
                        self.source.fail_at(f"{tool.name} has no parameter {name}", line.place)
                    expression = self.leaves.read_condition(line.tree.children[1])
                    self.found[tool.name].append((ConditionNeed(expression), line.place))
                    computed.append((name, expression))
                case _:
                    needs.append(self._read_need(line))
        need = needs[0] if len(needs) == 1 else NeedGroup("all of", tuple(needs))
        return replace(tool, need=need, computed=tuple(computed), **settings)

    def _read_changes(self, line: _Line) -> tuple[str, ...]:
        names = [str(token) for token in line.tree.children]
        if names == ["nothing"]:
            return ()
        for name in names:
            if name not in self.tools or self.tools[name].acts:
                checks = [one for one, tool in self.tools.items() if not tool.acts]
                way = _suggest_name(name, checks, "or: changes nothing")
                self.source.fail_at(f"{name} is no check", line.place, suggestion=way)
        return tuple(names)

    def _read_fact(self, block: _Line) -> Fact:
        name, *parameters = _find_names(block.tree)
        self._owner = name
        meanings = [one for one in block.tree.children if getattr(one, "data", "") == "meaning"]
        if meanings and block.children:
            self.source.fail_at("a fact has one condition, or a group below it", block.children[0].place)
        if not meanings and len(block.children) == 1 and block.children[0].kind == "meaning":
            meanings = [block.children[0].tree]
        until: tuple[Retraction, ...] = ()
        if meanings:
            parts = cast("Tree[Token]", meanings[0]).children
            need = self._to_need(parts[0])
            until = tuple(self._read_retraction(cast("Tree[Token]", one)) for one in parts[1:])
        else:
            items = tuple(self._read_need(line) for line in block.children)
            if not items:
                self.source.fail_at(f"{name} has no condition", block.place, suggestion="write it behind the colon")
            need = items[0] if len(items) == 1 else NeedGroup("all of", items)
        return Fact(name, tuple(parameters), need, until, _find_text(block.tree))

    def _read_retraction(self, tree: Tree[Token]) -> Retraction:
        name, *parts = tree.children
        if str(name) not in self.tools:
            way = _suggest_name(str(name), self.tools, "declare it: action ...")
            self.source.fail_at(f"unknown tool: {name}", find_place(name), suggestion=way)
        given = tuple(self.leaves.read_condition(part) for part in parts)
        if len(given) > len(self.tools[str(name)].parameters):
            self.source.fail_at(f"{name} has fewer parameters", find_place(name))
        return Retraction(str(name), given)

    def _read_need(self, line: _Line) -> Need:
        if line.kind == "grouping":
            items = tuple(self._read_need(child) for child in line.children)
            if not items:
                self.source.fail_at("a group without parts", line.place, suggestion="indent its parts below it")
            return NeedGroup(cast("Grouping", str(line.tree.children[0])), items)
        if line.kind != "meaning":
            self.source.fail_at(f"{line.texts[0].split()[0]} does not belong here", line.place)
        if len(line.tree.children) > 1:
            self.source.fail_at("'until' belongs to a fact", find_place(line.tree.children[1]))
        return self._to_need(line.tree.children[0])

    def _to_need(self, tree: object) -> Need:
        if getattr(tree, "data", "") == "hole":
            return Hole(unquote_text(str(cast("Tree[Token]", tree).children[1])))
        return self._convert(self.leaves.read_condition(tree), tree)

    def _convert(self, expression: Expression, tree: object) -> Need:
        match expression:
            case Connective(word, items):
                return NeedGroup(
                    "all of" if word == "and" else "any of", tuple(self._convert(one, tree) for one in items)
                )
            case Negation(inner):
                return NotNeed(self._convert(inner, tree))
        given = expression.given if isinstance(expression, PastLetter) else (expression,)
        self._check_values(given, tree)
        leaf = FactNeed(expression.letter, given) if isinstance(expression, PastLetter) else ConditionNeed(expression)
        self.found[self._owner].append((leaf, find_place(tree)))
        return leaf

    def _check_values(self, expressions: Sequence[Expression], tree: object, *, are_joined: bool = False) -> None:
        """Check that no fact, and no condition that ``and``, ``or`` and ``not`` make, is within a value.

        A condition on the items of a list may be joined.
        """
        for one in expressions:
            is_joined = isinstance(one, Connective | Negation)
            if isinstance(one, PastLetter) or (is_joined and not are_joined):
                self.source.fail_at(
                    f"{one} is a yes or no within a value", find_place(tree),
                    suggestion="join facts and conditions by and, or, not, or groups",
                )  # fmt: skip
            self._check_values(one.parts, tree, are_joined=is_joined or isinstance(one, ItemChoice))


class _ProcedureChecker:
    """Checks what a procedure's parts say of each other."""

    def __init__(self, reader: ProcedureReader, procedure: Procedure) -> None:
        self.reader = reader
        self.procedure = procedure
        self.names = {parameter.name for tool in procedure.tools.values() for parameter in tool.parameters}

    def check(self) -> None:
        for tool in self.procedure.tools.values():
            self._check_names(tool.name, {parameter.name for parameter in tool.parameters})
            for leaf, place in self.reader.found[tool.name]:
                for term in walk_terms(leaf):
                    if isinstance(term, CallValue) and self.procedure.tools[term.tool].acts:
                        self._fail(place, f"{term.tool} is an action, which only a fact may name",
                                   f"write fact done(...): {term.format_call()} is ok")  # fmt: skip
        for fact in self.procedure.facts.values():
            self._check_names(fact.name, set(fact.parameters))
            self._check_fact(fact)
        self._check_cycles()

    def _check_names(self, owner: str, own: set[str]) -> None:
        known = own | self.names | self.procedure.constants.keys()
        for leaf, place in self.reader.found[owner]:
            for term in walk_terms(leaf):
                if isinstance(term, FieldPath) and term.steps[0] not in known:
                    way = _suggest_name(str(term.steps[0]), known, "names are parameters of tools, and constants")
                    self._fail(place, f"unknown name in {owner}: {term.steps[0]}", way)

    def _check_fact(self, fact: Fact) -> None:
        action = self.procedure.find_action(fact)
        calls = [term for term in walk_terms(fact.need) if isinstance(term, CallValue)]
        if action is not None and (len(calls) > 1 or not isinstance(fact.need, ConditionNeed)):
            place = next(place for leaf, place in self.reader.found[fact.name] if action in walk_terms(leaf))
            self._fail(place, f"{action.tool} is an action: the fact that it establishes names nothing else",
                       "make it a fact of its own")  # fmt: skip
        if fact.until and action is None:
            self._fail(self.reader.places[fact.name], "only a fact that an action establishes ends by 'until'",
                       "what an action makes obsolete is written below it: changes CHECK")  # fmt: skip

    def _check_cycles(self) -> None:
        """Each tool and fact can be reached: not every way to establish its needs leads through itself."""
        reached: set[str] = set()
        owners: dict[str, ProcedureTool | Fact] = {**self.procedure.tools, **self.procedure.facts}
        while new := {name for name, one in owners.items() if name not in reached and _is_reached(one.need, reached)}:
            reached |= new
        for name in owners:
            if name not in reached:
                leaves = (place for leaf, place in self.reader.found[name] if not _is_reached(leaf, reached))
                place = next(leaves, self.reader.places.get(name))
                self._fail(place, f"{name} needs itself before it can be established", "name another way to check it")

    def _fail(self, place: Place | None, problem: str, suggestion: str) -> NoReturn:
        self.reader.source.fail_at(problem, place, suggestion=suggestion)


def _is_reached(need: Need, reached: set[str]) -> bool:
    match need:
        case NeedGroup("any of" | "first of", items):
            return any(_is_reached(item, reached) for item in items)
        case FactNeed() | ConditionNeed():
            return list_owners(need) <= reached
    return all(_is_reached(part, reached) for part in need.parts)


def _find_kind(bare: str) -> str:
    return next((kind for head, kind in _HEADS if re.match(head, bare)), "meaning")


def _get_name(block: _Line) -> str:
    return _find_names(block.tree)[0]


def _find_names(tree: Tree[Token]) -> list[str]:
    return [str(one) for one in tree.children if getattr(one, "type", "") == "ARG"]


def _find_text(tree: Tree[Token]) -> str:
    return next((unquote_text(str(one)) for one in tree.children if getattr(one, "type", "") == "STRING"), "")
