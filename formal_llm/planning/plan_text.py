"""Reading a plan that anybody wrote: a person, a language model, this library.

Understood are, besides the JSON of a plan or a JSON list of names:

- steps, one a line, by terminal name or label, with or without "Step 1:", "1.", "-" and "Use":
  their terminals in the order of the lines are the word;
- the same with what they are applied to, "Step 2: Use Colorization on the result of step 1", as a backward plan is
  printed: the word is the last step followed by its arguments, and theirs;
- a word, terminal names with blanks between them, and nested calls, "translation(captioning(input_image))".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from formal_llm.automata import CFG
from formal_llm.automata.lookahead import as_automaton
from formal_llm.errors import FormalLLMError, NotationError
from formal_llm.planning.plan import Plan

_NUMBER = re.compile(r"\s*(?:[-*•]\s+)?(?:step\s+(\d+)\s*[:.)]|(\d+)\s*[:.)])?\s*", re.IGNORECASE)
_RESULT = re.compile(r"(?:the\s+)?(?:result|output)\s+of\s+step\s+(\d+)", re.IGNORECASE)
_CALL = re.compile(r"(?:\w+\s*=\s*)?([^\s(),]+\(.*\))")
#: Steps may share their arguments, and the word writes them out each time.
_LONGEST = 10_000


class _Step(NamedTuple):
    number: int
    name: str
    inputs: tuple[int | str, ...]
    line: int


def read_plan_text(text: str, source: CFG | Any) -> tuple[str, ...]:
    """The word of a plan that anybody wrote.

    Args:
        text: the plan; see the module's page for the forms that are understood.
        source: the grammar or automaton whose terminals and labels are meant.

    Raises:
        NotationError: a name that is no terminal or label (with the nearest one), a step that refers to a step that is
            not before it or whose result is not used; with its line. JSON that is no plan.
    """
    return _Reader(source).read(text)


class _Reader:
    def __init__(self, source: CFG | Any) -> None:
        automaton = as_automaton(source)
        self._names: dict[str, list[str]] = {}
        self._terminals = automaton.terminals
        self._labels: dict[str, None] = {}
        label = getattr(automaton, "label", None)
        for name in self._terminals:
            shown = [name, name.replace("_", " "), *([label(name)] if label is not None else [])]
            for text in dict.fromkeys(map(_folded, shown)):
                self._names.setdefault(text, []).append(name)
            self._labels.update(dict.fromkeys(shown[:1] + shown[2:]))

    def read(self, text: str) -> tuple[str, ...]:
        if text.lstrip()[:1] in ("{", "["):
            return self._from_json(text)
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        steps: list[_Step] = []
        for place, line in lines:
            steps += self._steps(line, place, len(steps) + 1)
        if any(step.inputs for step in steps):
            return self._nested(steps, dict(lines))
        return tuple(step.name for step in steps)

    def _from_json(self, text: str) -> tuple[str, ...]:
        try:
            data = json.loads(text)
            if isinstance(data, dict) and "tree" in data:
                return Plan.from_json(text).word
            names = data["word"] if isinstance(data, dict) else data
        except (ValueError, KeyError) as error:
            raise NotationError(f"this is neither the JSON of a plan nor a list of names: {error}") from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise NotationError("a plan in JSON is a list of names, or an object with such a list as its 'word'")
        return tuple(self._known(name, None, "") for name in names)

    # -- names --------------------------------------------------------------------------------------------------

    def _find(self, text: str) -> str | None:
        """The terminal that a text names, with or without "Use" before it and a full stop after it."""
        text = text.strip()
        for form in (text, text.rstrip(".;,"), re.sub(r"(?i)^use\s+", "", text.rstrip(".;,"))):
            if form in self._terminals:
                return form
            found = self._names.get(_folded(form), [])
            if len(found) > 1:
                raise NotationError(f"{form!r} may be {' or '.join(found)}; write the name that is meant")
            if found:
                return found[0]
        return None

    def _known(self, text: str, line: int | None, source_line: str) -> str:
        name = self._find(text)
        if name is None:
            bare = re.sub(r"(?i)^use\s+", "", text.strip())
            problem = CFG.unknown("step", bare, self._labels)
            raise NotationError(problem, file="<plan>", line=line, source_line=source_line or None)
        return name

    def _steps(self, line: str, place: int, number: int) -> Iterator[_Step]:
        """The steps on a line: one, or where the line is a word or a nested call, all of its terminals."""
        if (name := self._find(line)) is not None:
            yield _Step(number, name, (), place)
            return
        call = _CALL.fullmatch(line.strip())
        names = re.split(r"[\s(),]+", call[1].strip(")")) if call else line.split()
        known = sum(name in self._terminals for name in names)
        if call or 2 * known > len(names):
            for at, name in enumerate(names):
                yield _Step(number + at, self._known(name, place, line), (), place)
            return
        prefix = _NUMBER.match(line)
        assert prefix is not None  # it matches nothing at all, too
        number = int(prefix[1] or prefix[2] or number)
        text = line[prefix.end() :]
        if self._find(text) is None:
            for split in re.finditer(r"\s+on\s+", text):
                head, inputs = self._find(text[: split.start()]), self._inputs(text[split.end() :])
                if head is not None and inputs is not None:
                    yield _Step(number, head, inputs, place)
                    return
        yield _Step(number, self._known(text, place, line), (), place)

    def _inputs(self, text: str) -> tuple[int | str, ...] | None:
        """What a step is applied to: numbers of steps, terminals. A label may itself hold an "and"."""
        parts, waiting = [], ""
        for part in re.split(r"\s+and\s+", text):
            waiting = f"{waiting} and {part}" if waiting else part
            result = _RESULT.fullmatch(waiting.strip().rstrip(".;,"))
            found = int(result[1]) if result else self._find(waiting)
            if found is not None:
                parts.append(found)
                waiting = ""
        return None if waiting else tuple(parts)

    # -- nested plans -------------------------------------------------------------------------------------------

    @staticmethod
    def _nested(steps: Sequence[_Step], lines: dict[int, str]) -> tuple[str, ...]:
        """The word of steps that are applied to each other: the last one, followed by its arguments, and theirs."""
        words: dict[int, tuple[str, ...]] = {}
        unused: dict[int, _Step] = {}
        for step in steps:
            word = [step.name]
            for item in step.inputs:
                if isinstance(item, int) and item not in words:
                    raise NotationError(
                        f"there is no step {item} before this one", file="<plan>", line=step.line,
                        source_line=lines[step.line],
                    )  # fmt: skip
                word += words[item] if isinstance(item, int) else (item,)
                if isinstance(item, int):
                    unused.pop(item, None)
            if len(word) > _LONGEST:
                raise FormalLLMError(f"written out, the plan has more than {_LONGEST:,} terminals")
            words[step.number] = tuple(word)
            unused[step.number] = step
        *lost, last = unused.values()
        if lost:
            raise NotationError(
                f"the result of step {lost[0].number} is not used", file="<plan>", line=lost[0].line,
                source_line=lines[lost[0].line],
            )  # fmt: skip
        return words[last.number]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
