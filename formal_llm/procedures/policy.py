"""Reader of the usual text of a policy: from "ALL of these conditions must be met: ..." to the needs of tools.

The groups are read by rules: headings, bullets, numbers, indentation, parentheses. Each sentence becomes the fact that
it states (:mod:`formal_llm.procedures.sentences`). What is not clear stays a
:class:`~formal_llm.procedures.Hole`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from formal_llm.authored.files import lines_of
from formal_llm.errors import InputError
from formal_llm.llms.llm import LLM, LLMLike, answered, resolve
from formal_llm.llms.question import Question
from formal_llm.procedures.procedure import (
    GROUPINGS,
    NO_NEED,
    Grouping,
    Hole,
    Need,
    NeedGroup,
    Procedure,
    ProcedureTool,
    format_tool,
)
from formal_llm.procedures.sentences import SentenceReader

_MARK = re.compile(r"(?:[-*–—•◦‣]|\(?(?:\d+|[a-zA-Z]|[ivx]+)[.)])\s+")
#: The name of a tool above its conditions: "refund:", "* refund: ...", "## Refund".
_TITLE = re.compile(r"\s*(?:(#+)\s*|[*•-]\s+)?[`*]*([A-Za-z][\w ]*?)[`*]*(?:\s*:[`*]*\s*(.*)|\s*(?(1)$|(?!)))$")
#: How the parts below a heading count, by its words; the first that fits decides.
_GROUPS: Sequence[tuple[str, Grouping]] = (
    (r"\b(?:order|sequence)\b", "in order"), (r"\b(?:none|neither)\b", "none of"), (r"\bfirst\b", "first of"),
    (r"\b(?:any|one|either)\b", "any of"), (r"\b(?:all|each|every|both|following)\b", "all of"),
)  # fmt: skip
#: A heading of these words says nothing else; with any other it is a condition, too.
_HEADING = re.compile(
    r"(?:\W*\b(?:all|any|one|of|th(?:e|is|at|ese)|following|(?:condition|requirement|step|check)s?|criteri(?:on|a)|must"
    r"|may|needs?|to|have|has|should|shall|be|is|are|met|satisfied|fulfilled|holds?|true|appl(?:y|ies)|completed|done"
    r"|made|taken|passed|in|order|sequence|listed|below|given|each|every|both|either|at|least|none|neither|first|can"
    r"|determined|decides|which|required|before|you|it|and)\b)*\W*"
)
_CONNECTIVES: Mapping[str, Grouping] = {"and": "all of", "or": "any of", "then": "in order", "and then": "in order"}


@dataclass
class _PolicyLine:
    """A line of a policy with those below it; ``text`` is empty for a pair of parentheses."""

    level: int
    text: str
    children: list[_PolicyLine] = field(default_factory=list)

    def join_texts(self) -> str:
        """Return the text with that of the items below."""
        return " ".join(filter(None, (self.text, *(child.join_texts() for child in self.children))))

    @property
    def is_heading(self) -> bool:
        """Whether other items belong below it."""
        return not self.text or self.text.endswith(":") or _find_grouping(self.text) is not None

    @property
    def connective(self) -> Grouping | None:
        """How the items around it count, if it is nothing but "and", "or" or "then"."""
        return _CONNECTIVES.get(self.text.casefold().strip(" ,."))


def _find_grouping(heading: str) -> Grouping | None:
    """Return how the parts below a heading count; None if it says anything else as well."""
    plain = heading.casefold()
    if not re.search(r"\b(?:of|following|these|order|sequence)\b", plain) or not _HEADING.fullmatch(plain):
        return None
    return next((grouping for pattern, grouping in _GROUPS if re.search(pattern, plain)), None)


def _read_items(text: str) -> list[_PolicyLine]:
    top: list[_PolicyLine] = []
    above: list[_PolicyLine] = []
    depth, goes_on = 0, False
    for line in lines_of(text.expandtabs(4)):
        bare = line.strip()
        mark = _MARK.match(bare)
        level = 1000 * depth + 2 * (len(line) - len(line.lstrip())) + bool(mark)
        item = _PolicyLine(level, bare[mark.end() :] if mark else bare)
        if item.connective:  # it is beside items with a mark, too
            level = item.level = next((one.level for one in reversed(above) if one.level in (level, level + 1)), level)
        plain = bare and not mark and bare not in ("(", ")") and item.connective is None
        if plain and goes_on and (
            not re.search(r"[.:;!?)\"']$", above[-1].text) or (level > above[-1].level and not above[-1].is_heading)
        ):  # fmt: skip
            above[-1].text += f" {bare}"
        elif bare and bare != ")":
            while above and above[-1].level >= level:
                above.pop()
            item.text = "" if bare == "(" else item.text
            (above[-1].children if above else top).append(item)
            above.append(item)
        depth += (bare == "(") - (bare == ")")
        goes_on = bool(bare and above and above[-1].text and above[-1].connective is None) and bare != ")"
    return top


# -- policies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicySentence:
    """A sentence of a policy as it was read.

    Attributes:
        tool: the tool before whose call it has to hold.
        need: what was read; a hole if it was not understood.
        by_model: whether a model chose the fact.
        doubt: what a person should look at; empty if there is nothing.
    """

    tool: str
    text: str
    need: Need
    by_model: bool = False
    doubt: str = ""

    @property
    def is_understood(self) -> bool:
        """Whether it is no hole."""
        return not isinstance(self.need, Hole)


@dataclass(frozen=True)
class PolicyReading:
    """What was read in a policy.

    Attributes:
        procedure: the procedure with the needs that were read.
        needs: these needs, by tool.
        unread: the lines that belong to no tool.
    """

    procedure: Procedure
    needs: Mapping[str, Need]
    sentences: tuple[PolicySentence, ...]
    unread: tuple[str, ...] = ()

    def write(self, declared: str | None = None) -> str:
        """Return the text of a ``.procedure`` file, with the sentence above each need that was read from it.

        Args:
            declared: the text of the procedure that declared the tools; all but their needs is kept.
        """
        lines = lines_of(declared if declared is not None else str(self.procedure))
        for name in self.needs:
            begin = next(
                at for at, line in enumerate(lines) if re.match(rf"(?:goal\s+)?(?:check|action)\s+{name}\b", line)
            )
            end = next((at for at in range(begin + 1, len(lines)) if re.match(r"[^\s)\]}]", lines[at])), len(lines))
            while not lines[end - 1].strip():
                end -= 1
            lines[begin:end] = self._write_tool(self.procedure.tools[name])
        return "\n".join(lines) + "\n"

    def _write_tool(self, tool: ProcedureTool) -> Iterator[str]:
        head = format_tool(replace(tool, need=NO_NEED)).split("\n")
        yield from head
        sentences = (one for one in self.sentences if one.tool == tool.name)
        for line in format_tool(tool).split("\n")[len(head) :]:
            if line.strip() not in GROUPINGS:
                one = next(sentences)
                before, after = "a model chose this: " if one.by_model else "", f" ({one.doubt})" if one.doubt else ""
                if one.is_understood:
                    yield f"{line[: -len(line.lstrip())]}# {before}{one.text}{after}"
            yield line


def read_policy(
    procedure: Procedure, text: str, llm: LLMLike | None = None, *, tool: str | None = None
) -> PolicyReading:
    """Read the needs of tools from the usual text of a policy.

    Args:
        procedure: declares tools and facts. What it needs before the tools of the policy is replaced.
        text: the policy: the name of a tool and a colon, and below it what must hold before its call.
        llm: chooses the facts of sentences that are not understood by rules, or none.
        tool: the tool that a text without names is about; by default the only goal.

    Raises:
        InputError: the text names no tool, and there are several goals.
        LLMError: the model could not be asked.
    """
    sections, unread = _find_sections(procedure, text)
    if not sections:
        names = [one.name for one in procedure.goals] if tool is None else [tool]
        if len(names) != 1 or names[0] not in procedure.tools:
            raise InputError(
                "the policy names no tool; write the name of a tool and a colon above its conditions: "
                f"{', '.join(procedure.tools)}"
            )
        sections, unread = {names[0]: text}, []
    reader = _PolicyReader(procedure, llm)
    needs = {name: reader.read_section(procedure.tools[name], part) for name, part in sections.items()}
    tools = {name: replace(one, need=needs.get(name, one.need)) for name, one in procedure.tools.items()}
    return PolicyReading(replace(procedure, tools=tools), needs, tuple(reader.sentences), tuple(unread))


def _find_sections(procedure: Procedure, text: str) -> tuple[dict[str, str], list[str]]:
    """Return the parts of a policy by tool, and the lines that belong to none."""
    known = {re.sub(r"\W|_", "", name.casefold()): name for name in procedure.tools}
    sections: dict[str, str] = {}
    unread: list[str] = []
    name: str | None = None
    for line in lines_of(text):
        found = _TITLE.match(line)
        title = known.get(re.sub(r"\W|_", "", found[2].casefold())) if found else None
        if found and title is not None:
            name, line = title, found[3] or ""
        elif line.startswith("#"):
            name = None
        if name is not None:
            sections[name] = f"{sections.get(name, '')}{line}\n"
        elif line.strip():
            unread.append(line.strip())
    return sections, unread


class _PolicyReader:
    def __init__(self, procedure: Procedure, llm: LLMLike | None) -> None:
        self.reader = SentenceReader(procedure)
        self.model: LLM | None = resolve(llm) if llm is not None else None
        self.sentences: list[PolicySentence] = []

    def read_section(self, tool: ProcedureTool, text: str) -> Need:
        """Return the need of a tool."""
        items = _read_items(text)
        if not items or (len(items) == 1 and items[0].text.casefold().strip(" .") in ("none", "nothing")):
            return NO_NEED
        return self._read_item(items[0], tool) if len(items) == 1 else self._read_group(None, items, tool)

    def _read_item(self, item: _PolicyLine, tool: ProcedureTool) -> Need:
        grouping = _find_grouping(item.text)
        if not item.children and not item.is_heading and _find_grouping(item.text.partition(":")[0]) is None:
            return self._read_leaf(item.text, tool)
        if not item.children or (item.text and grouping is None):
            return self._add_hole([item], tool)
        return self._read_group(grouping, item.children, tool)

    def _read_group(self, grouping: Grouping | None, items: Sequence[_PolicyLine], tool: ProcedureTool) -> Need:
        """Read items as a group; as one hole if they contradict each other, or may belong to a heading among them."""
        joined = {one.connective for one in items if one.connective}
        parts = [one for one in items if not one.connective]
        if len(joined | {grouping} - {None}) > 1 or any(one.is_heading and not one.children for one in parts):
            return self._add_hole(items, tool)
        return NeedGroup(
            grouping or next(iter(joined), None) or "all of", tuple(self._read_item(one, tool) for one in parts)
        )

    def _read_leaf(self, text: str, tool: ProcedureTool) -> Need:
        need, doubt = self.reader.read_sentence(text, tool)
        by_model = False
        if isinstance(need, Hole) and self.model is not None:
            options = self.reader.list_options(text)
            question = Question(
                f"Before {tool.name} this must hold:\n{text}\n\nWhich of these facts does the sentence state?",
                [*(option for option, _ in options), "none of these"],
            )  # fmt: skip
            number = answered(self.model, question).number
            if number <= len(options):
                need, by_model = options[number - 1][1], True
        self.sentences.append(PolicySentence(tool.name, text, need, by_model, doubt))
        return need

    def _add_hole(self, items: Sequence[_PolicyLine], tool: ProcedureTool) -> Hole:
        hole = Hole(" ".join(one.join_texts() for one in items))
        self.sentences.append(PolicySentence(tool.name, hole.text, hole))
        return hole
