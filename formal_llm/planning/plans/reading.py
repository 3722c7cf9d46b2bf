"""Reading a plan that anybody wrote: a person, a language model, this library.

Understood are, besides the JSON of a plan or a JSON list of names:

- steps, one a line, by terminal name or label, with or without "Step 1:", "1.", "-" and "Use":
  their terminals in the order of the lines are the word;
- the same with what they are applied to, "Step 2: Use Colorization on the result of step 1", as a backward plan is
  printed: the word is the last step followed by its arguments, and theirs;
- a word, terminal names with blanks between them, and nested calls, "translation(captioning(input_image))".

Where the transitions of an automaton have texts of their own, as the steps of a flowchart do, these are understood like
labels. A decision of a flowchart is its question with the answer; where the lines leave decisions out, as a printed
plan does, they are filled in: the steps are a finite automaton, a chain that reads them one after the other and any
decisions between them; what it has in common with the flowchart are the words that the steps may stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from formal_llm.authored.files import lines_of, parse_json
from formal_llm.automata import CFG, PDA, Lookahead, Source, Transition, Word
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.product import product
from formal_llm.errors import FormalLLMError, NotationError, Undecided, unknown
from formal_llm.planning.plans.lines import STOPS, Line, folded, own_terminals, read_back, tells
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.source import source_of

_NUMBER = re.compile(r"\s*(?:[-*•]\s+)?(?:step\s+(\d+)\s*[:.)]|(\d+)\s*[:.)])?\s*", re.IGNORECASE)
_RESULT = re.compile(r"(?:the\s+)?(?:result|output)\s+of\s+step\s+(\d+)", re.IGNORECASE)
_CALL = re.compile(r"(?:\w+\s*=\s*)?([^\s(),]+\(.*\))")
#: Steps may share their arguments, and the word writes them out each time.
_LONGEST = 10_000


#: The terminals that a text may name; none for a step without input.
Names = tuple[str, ...]


class _Step(NamedTuple):
    number: int
    names: Names
    inputs: tuple[int | str, ...]
    line: int


def read_plan_text(text: str, source: Source, *, order: Order = "forward") -> Word:
    """The word of a plan that anybody wrote.

    Args:
        text: the plan; see the module's page for the forms that are understood.
        source: the grammar, flowchart, behaviour or automaton whose terminals and labels are meant.
        order: ``backward`` where steps on several lines stand in the order in which they are carried out, and the word
            runs from the last one to the first. A word on one line is a word.

    Raises:
        NotationError: a name that is no terminal or label (with the nearest one), a step that refers to a step that is
            not before it or whose result is not used; with its line. JSON that is no plan.
    """
    return _PlanReader(source, order).read(text)


def names_of(text: str, source: Source) -> Names:
    """The terminals that a text may name: by name, by label, by the text of a transition; none where it names none.

    Raises:
        NotationError: a label that several terminals share, where no decisions tell which one is meant.
    """
    return _PlanReader(source, "forward").names(text)


class _PlanReader:
    def __init__(self, source: Source, order: Order) -> None:
        self._automaton = automaton = as_automaton(source_of(source, "read_plan_text"))
        self._order = order
        self._names: dict[str, list[str]] = {}
        self._labels: dict[str, None] = {}
        vocabulary = Vocabulary(automaton)
        self._terminals = dict.fromkeys(vocabulary.terminals)
        cfg = vocabulary.grammar
        #: A grammar whose productions have texts.
        self._telling = cfg if cfg is not None and any(p.text for p in cfg.productions) else None
        transitions = automaton.transitions if isinstance(automaton, PDA) else ()
        told = [transition for transition in transitions if transition.text and transition.production is None]
        #: Whether the automaton decides: then where several steps read the same, the decisions tell which one it is.
        self._decides = any(transition.decision for transition in told)
        label = vocabulary.label
        for name in self._terminals:
            self._learn(name, [name, name.replace("_", " "), label(name)])
            self._labels.update(dict.fromkeys((name, label(name))))
        for transition in told:
            if transition.read is not None:
                self._learn(transition.read, _texts(transition))
                self._labels.update(dict.fromkeys(_texts(transition)[:1]))
        #: The texts of moves without input: steps in the plan, nothing in the word.
        self._silent = {
            folded(form)
            for transition in told
            if transition.read is None
            for text in _texts(transition)
            for form in (text, text.rstrip(STOPS))
        }

    def _learn(self, name: str, texts: Sequence[str]) -> None:
        """Note that these texts name a terminal, also without the full stop at their end."""
        for known in dict.fromkeys(folded(form) for text in texts for form in (text, text.rstrip(STOPS))):
            names = self._names.setdefault(known, [])
            if name not in names:
                names.append(name)

    def read(self, text: str) -> Word:
        if text.lstrip()[:1] in ("{", "["):
            return self._from_json(text)
        numbered = list(enumerate(lines_of(text), 1))
        lines = [(number, line) for number, line in numbered if line.strip() and not line.lstrip().startswith("# ")]
        told = self._told(lines)
        if told and (word := read_back(told[0], told[1], self._order)) is not None:
            return word
        steps: list[_Step] = []
        try:
            for place, line in lines:
                steps += self._steps(line, place, len(steps) + 1)
        except NotationError:
            if told:
                return own_terminals(told[0], told[1], self._order)
            raise
        if any(step.inputs for step in steps):
            return self._nested(steps, dict(lines))
        if self._order == "backward" and len(lines) > 1:
            steps.reverse()
        places = [step.names for step in steps if step.names]
        if self._decides and len(lines) == len(steps):
            assert isinstance(self._automaton, PDA)  # it has transitions that decide
            return fill_decisions(places, self._automaton)
        return tuple(names[0] for names in places)

    def _told(self, lines: Sequence[tuple[int, str]]) -> tuple[CFG, list[Line]] | None:
        """The grammar and the lines, where one of them is the text of a production."""
        if self._telling is None:
            return None
        told = []
        for index, (place, line) in enumerate(lines, 1):
            number, bare = _unnumbered(line, index)
            texts = [folded(bare), folded(line)]
            forms = tuple(dict.fromkeys(form for text in texts for form in (text, text.rstrip(STOPS))))
            told.append(Line(number, place, line, forms))
        return (self._telling, told) if tells(self._telling, told) else None

    def _from_json(self, text: str) -> Word:
        try:
            data: Any = parse_json(text)
            if isinstance(data, dict) and "tree" in data:
                return Plan.from_json(text).word
            names = data["word"] if isinstance(data, dict) else data
        except (ValueError, KeyError) as error:
            raise NotationError(f"this is neither the JSON of a plan nor a list of names: {error}") from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise NotationError("a plan in JSON is a list of names, or an object with such a list as its 'word'")
        return tuple(self._known(name, None, "")[0] for name in names)

    # -- names --------------------------------------------------------------------------------------------------

    def _find(self, text: str) -> Names | None:
        """The terminals that a text names, with or without "Use" before it and a full stop after it; None: no step."""
        text = text.strip()
        for form in (text, text.rstrip(STOPS), re.sub(r"(?i)^use\s+", "", text.rstrip(STOPS))):
            if form in self._terminals:
                return (form,)
            found = self._names.get(folded(form), [])
            if len(found) > 1 and not self._decides:
                raise NotationError(f"{form!r} may be {' or '.join(found)}; write the name that is meant")
            if found:
                return tuple(found)
            if folded(form) in self._silent:
                return ()
        return None

    def names(self, text: str) -> Names:
        """The terminals that a text names; none where it names none."""
        return self._find(text) or ()

    def _known(self, text: str, line: int | None, source_line: str) -> Names:
        names = self._find(text)
        if names is None:
            bare = re.sub(r"(?i)^use\s+", "", text.strip())
            problem = unknown("step", bare, self._labels)
            raise NotationError(problem, file="<plan>", line=line, source_line=source_line or None)
        return names

    def _steps(self, line: str, place: int, number: int) -> Iterator[_Step]:
        """The steps on a line: one, or where the line is a word or a nested call, all of its terminals."""
        if (found := self._find(line)) is not None:
            yield _Step(number, found, (), place)
            return
        call = _CALL.fullmatch(line.strip())
        names = re.split(r"[\s(),]+", call[1].strip(")")) if call else line.split()
        known = sum(name in self._terminals for name in names)
        if call or 2 * known > len(names):
            for at, name in enumerate(names):
                yield _Step(number + at, self._known(name, place, line), (), place)
            return
        number, text = _unnumbered(line, number)
        if self._find(text) is None:
            for split in re.finditer(r"\s+on\s+", text):
                head, inputs = self._find(text[: split.start()]), self._inputs(text[split.end() :])
                if head is not None and inputs is not None:
                    yield _Step(number, head, inputs, place)
                    return
        yield _Step(number, self._known(text, place, line), (), place)

    def _inputs(self, text: str) -> tuple[int | str, ...] | None:
        """What a step is applied to: numbers of steps, terminals. A label may itself hold an "and"."""
        parts: list[int | str] = []
        found: tuple[int | str, ...] | None
        waiting = ""
        for part in re.split(r"\s+and\s+", text):
            waiting = f"{waiting} and {part}" if waiting else part
            result = _RESULT.fullmatch(waiting.strip().rstrip(STOPS))
            found = (int(result[1]),) if result else self._find(waiting)
            if found:
                parts.append(found[0])
                waiting = ""
        return None if waiting else tuple(parts)

    # -- nested plans -------------------------------------------------------------------------------------------

    @staticmethod
    def _nested(steps: Sequence[_Step], lines: dict[int, str]) -> Word:
        """The word of steps that are applied to each other: the last one, followed by its arguments, and theirs."""
        words: dict[int, Word] = {}
        unused: dict[int, _Step] = {}
        for step in steps:
            word = [*step.names[:1]]
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


def _unnumbered(line: str, number: int) -> tuple[int, str]:
    """The number of a line, ``number`` where it tells none, and what comes after it."""
    prefix = _NUMBER.match(line)
    assert prefix is not None  # it matches nothing at all, too
    return int(prefix[1] or prefix[2] or number), line[prefix.end() :]


def _texts(transition: Transition) -> list[str]:
    """The texts that name a transition: its own; that of an answer, also with its question before it."""
    text, question = transition.text, transition.question
    bare = question.rstrip("?: ")
    return [f"{question} {text}", f"{bare}: {text}", f"{bare} {text}", text] if transition.decision else [text]


# -- decisions that were left out ------------------------------------------------------------------------------------


def fill_decisions(steps: Sequence[tuple[str, ...]], pda: PDA) -> Word:
    """A shortest word of an automaton that has these steps, and between them decisions.

    Where there is none, a word that has decisions filled in as far as some word begins with the steps; the other steps
    follow as they are. A step may be one of several terminals; the transitions say which terminals are decisions.
    """
    found = _shortest(pda, steps, ends=True)
    if found is not None:
        return found
    low, high = 0, len(steps) + 1
    begun: Word = ()
    # Each beginning of the steps that can be gone on with has only beginnings with which that is so: halving.
    while high - low > 1:
        middle = (low + high) // 2
        word = _shortest(pda, steps[:middle], ends=False)
        if word is None:
            high = middle
        else:
            low, begun = middle, _up_to(word, steps[:middle])
    return (*begun, *(names[0] for names in steps[low:]))


def _shortest(pda: PDA, steps: Sequence[tuple[str, ...]], *, ends: bool) -> Word | None:
    """A shortest word that has the steps; it may go on after them unless it ``ends`` there. None for no such word."""
    both = product(pda, _chain(steps, _decisions(pda), () if ends else pda.terminals))
    try:
        return Lookahead(both).shortest_word()
    except Undecided:
        return None


def _decisions(pda: PDA) -> dict[str, None]:
    return dict.fromkeys(t.read for t in pda.transitions if t.decision and t.read is not None)


def _chain(steps: Sequence[tuple[str, ...]], decisions: Iterable[str], after: Iterable[str]) -> PDA:
    """The finite automaton that reads the steps, decisions between them, and after them anything of ``after``."""
    end = len(steps)
    moves = [Transition(at, name, None, at + 1) for at, names in enumerate(steps) for name in names]
    moves += [Transition(at, name, None, at) for at in range(end + 1) for name in decisions]
    moves += [Transition(end, name, None, end) for name in after]
    return PDA(moves, start=0, accepting=[end], check=False)


def _up_to(word: Word, steps: Sequence[tuple[str, ...]]) -> Word:
    """The beginning of a word that ends with the last of the steps."""
    at = 0
    for place, name in enumerate(word):
        if at == len(steps):
            return word[:place]
        at += name in steps[at]
    return word
