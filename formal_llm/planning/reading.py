"""Reading a plan: JSON, a word, nested calls, or one step a line. Anything else is refused, with its line.

- JSON: ``{"plan": [names]}``, a list of names, or the JSON that a plan prints.
- A word: names of terminals with blanks between them, on one line; those with blanks in quotes.
- Nested calls, ``translation(captioning(image))``: the names in order are the word, and its plan must have these calls.
- One step a line, in the order of carrying out: a name, a label, or a text of the rules. Bullets and numbers before it
  are dropped; nothing else may stand there. Decisions of charts may be left out. Steps of nested calls say what they
  are applied to ("Use X on A and the result of step 1"): every order is right in which a result is made before its use.

Lines may stand for many words, as they need not hold decisions. These words are the language of an automaton, so
whether one of them keeps the rules is whether a product has a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

from formal_llm.authored.files import parse_json
from formal_llm.automata import CFG, PDA, Lookahead, Production, Source, Transition, Word
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members, unquote_text
from formal_llm.errors import NotationError, Undecided, did_you_mean, unknown
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.steps import one_line
from formal_llm.planning.plans.tree import Call, Node, build_tree, is_flat
from formal_llm.planning.plans.vocabulary import EMPTY, Vocabulary
from formal_llm.planning.source import source_of

_BULLETS = re.compile(r"(?:[-*+•]\s+|\[[ xX]\]\s+)+")
_NUMBER = re.compile(r"(?:step\s+)?\(?(\d{1,9})[.:)]\s+", re.IGNORECASE)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_CALL = re.compile(r"(?:\w+ = )?[^\s(),=]+(?: ?\(.*\))?")
_PIECE = re.compile(r"[^\s(),]+|[(),]")
_RESULT = re.compile(r"(?:the )?result of step (\d{1,9})", re.IGNORECASE)
#: How many derivations of a word are looked at, and how many words that share labels.
_DERIVATIONS, _OTHERS, _TOLD = 300, 100, 300
#: With more printed steps than this it is not determined which of them were possible at the place of a wrong one.
_TRIED = 100
_NO_RULES = PDA([], start=0, accepting=[0], check=False)
#: How plans can be written, for errors.
FORMS = "a plan is one step a line, a word (names with blanks between them), nested calls, or JSON"


class StepLine(NamedTuple):
    """A line with a step: its place in the text, from 1; the whole line; the step; the number before it, if any."""

    place: int
    source: str
    text: str
    number: int | None = None


class ReadingProblem(NamedTuple):
    """Why a text describes no plan: what is wrong, the line where it is (None for none), what was possible there."""

    problem: str
    line: StepLine | None = None
    expected: tuple[str, ...] = ()

    def to_error(self) -> NotationError:
        """The same as an error."""
        place, source = (self.line.place, self.line.source) if self.line is not None else (None, None)
        return NotationError(self.problem, file="<plan>", line=place, source_line=source, expected=self.expected)


def fold_text(text: str) -> str:
    """A text as it is compared: blanks and capitals do not count."""
    return " ".join(text.casefold().split())


def write_step(transition: Transition, label: str) -> str | None:
    """The step that a transition of an automaton without a grammar prints; None for none."""
    if transition.decision or (transition.read is None and not transition.text):
        return None
    return transition.text or f"Use {label}"


def split_mark(row: str) -> tuple[str, int | None]:
    """A line without bullets and number, and the number."""
    text = row.strip()
    found = _BULLETS.match(text)
    text = text[found.end() :] if found else text
    numbered = _NUMBER.match(text)
    return (text[numbered.end() :], int(numbered[1])) if numbered else (text, None)


class StepTexts:
    """What the steps of rules may be called: a text of the rules, or the name or label of a terminal.

    Args:
        pda: the automaton, or None where only the vocabulary is known.
        vocabulary: the names and labels; that of the automaton where left out.

    Attributes:
        printed: the steps as they are printed, with their transitions.
        silent: the transitions that print no step.
    """

    def __init__(self, pda: PDA | None, vocabulary: Vocabulary | None = None) -> None:
        vocabulary = vocabulary or Vocabulary(pda)  # type: ignore[arg-type]
        self.printed: dict[str, set[Transition]] = {}
        self._near: dict[str, set[Transition]] = {}
        self.reading: dict[str, set[Transition]] = {}
        self._labels: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self.shown: dict[str, None] = {}
        self.silent: set[Transition] = set()
        for move in pda.transitions if pda is not None else ():
            self._add_move(move, vocabulary.label(move.read) if move.read is not None else "")
        for name in dict.fromkeys(vocabulary.terminals) or self.reading:
            label = vocabulary.label(name)
            self.shown.update(dict.fromkeys((name, label)))
            self._labels.setdefault(fold_text(label), []).append(name)
            for form in dict.fromkeys((fold_text(name), fold_text(name.replace("_", " ")))):
                self._names.setdefault(form, []).append(name)

    def _add_move(self, move: Transition, label: str) -> None:
        if move.read is not None:
            self.reading.setdefault(move.read, set()).add(move)
        if move.production is not None:
            self.silent.add(move)
            return
        text = write_step(move, label)
        if text is not None:
            self.printed.setdefault(one_line(text), set()).add(move)
            self._near.setdefault(fold_text(text), set()).add(move)
            return
        self.silent.add(move)
        if move.decision:
            answer, bare = move.text or label, move.question.rstrip("?: ")
            for form in (f"{move.question} {answer}", f"{bare}: {answer}", f"{bare} {answer}", answer):
                self._near.setdefault(fold_text(form), set()).add(move)

    def find_terminals(self, text: str) -> tuple[str, ...]:
        """The terminals that a text names, with or without "Use" before it; none where it names none.

        Raises:
            NotationError: it is the label of one terminal and the name of another.
        """
        for form in dict.fromkeys((fold_text(text), fold_text(text).removeprefix("use "))):
            labelled, named = self._labels.get(form, []), self._names.get(form, [])
            if labelled and named and not set(named) <= set(labelled):
                raise NotationError(
                    f"{text!r} is the label of {' or '.join(labelled)} and the name of {' or '.join(named)}; "
                    "write the plan as JSON, a list of names"
                )
            if labelled or named:
                return tuple(labelled or named)
        return ()

    def find_moves(self, text: str) -> Collection[Transition]:
        """The transitions that a line may describe."""
        found = self.printed.get(text) or self._near.get(fold_text(text))
        return found or {one for name in self.find_terminals(text) for one in self.reading.get(name, ())}


# -- the words that lines stand for -----------------------------------------------------------------------------------

#: Whether anything may come before the lines, or after them.
Around = Literal["", "before", "after"]


@dataclass(frozen=True)
class CandidateWords:
    """The words that lines may stand for.

    Attributes:
        pda: the automaton for these words.
        lines: for the transitions that a line describes, the index of that line.
    """

    pda: PDA
    lines: Mapping[Transition, int]

    def find_word(self, rules: PDA, max_states: int) -> Word | None:
        """A short one of the words that keep the constraints of a product and the limits; None for none.

        Raises:
            Undecided: the budget of states ran out before that was known.
        """
        pda = PDA(
            self.pda.transitions, start=self.pda.start_state, accepting=self.pda.accepting_states,
            stack=self.pda.start_stack, symbols=rules.symbols, check=False,
        )  # fmt: skip
        kept = constrained(pda, (factor.without_limits for factor in rules.factors[1:]))
        return Lookahead(kept.with_limits(rules.limits, rules.terminals), max_states=max_states).shortest_word()


def _build_candidates(
    pda: PDA, silent: Collection[Transition], lines: Sequence[Collection[Transition]], around: Around = ""
) -> CandidateWords:
    """The words of the runs that take one transition of each of the lines, in their order, and silent ones between."""
    leaving: dict[State, list[Transition]] = {}
    for transition in pda.transitions:
        leaving.setdefault(transition.state, []).append(transition)
    end = len(lines)
    free = {"before": 0, "after": end}.get(around)
    start = (pda.start_state, 0)
    seen: dict[State, None] = {start: None}
    todo = [start]
    made: list[Transition] = []
    line_of: dict[Transition, int] = {}
    for state, at in todo:  # it grows
        for transition in leaving.get(state, ()):
            afters = [at] if transition in silent or at == free else []
            afters += [at + 1] if at < end and transition in lines[at] else []
            for after in afters:
                move = replace(transition, state=(state, at), target=(transition.target, after))
                made.append(move)
                if after > at:
                    line_of[move] = at
                if (here := (transition.target, after)) not in seen:
                    seen[here] = None
                    todo.append(here)
    accepting = [(state, at) for state, at in todo if at == end and state in pda.accepting_states]
    return CandidateWords(PDA(made, start=start, accepting=accepting, stack=pda.start_stack, check=False), line_of)


class StepLines:
    """Lines as the steps of an automaton, in the order of carrying out.

    Attributes:
        candidates: the words; there may be none.

    Raises:
        NotationError: a line describes nothing of the automaton.
    """

    def __init__(self, pda: PDA, texts: StepTexts, lines: Sequence[StepLine]) -> None:
        self._pda, self._texts, self._lines, self._prefix = pda, texts, lines, pda.order == "prefix"
        self._matches = [texts.find_moves(line.text) for line in lines]
        self.candidates = self._find_candidates(self._matches)

    def _find_candidates(self, matches: Sequence[Collection[Transition]], around: Around = "") -> CandidateWords:
        found = _build_candidates(self._pda, self._texts.silent, matches[::-1] if self._prefix else matches, around)
        if not self._prefix:
            return found
        return CandidateWords(found.pda, {move: len(matches) - 1 - line for move, line in found.lines.items()})

    def explain_failure(self, possible: Callable[[CandidateWords], bool]) -> ReadingProblem:
        """Why no plan is described: the first line that no plan has there, after the lines before it.

        Args:
            possible: whether some of the words keep the rules.
        """
        around: Around = "before" if self._prefix else "after"
        low, high = 0, len(self._lines) + 1
        # Each beginning of the lines that some plan has, has only beginnings with which that is so: halving.
        while high - low > 1:
            middle = (low + high) // 2
            fits = possible(self._find_candidates(self._matches[:middle], around))
            low, high = (middle, high) if fits else (low, middle)
        known = self._texts.printed
        could: tuple[str, ...] = ()
        if len(known) <= _TRIED:
            before = self._matches[:low]
            could = tuple(t for t, moves in known.items() if possible(self._find_candidates([*before, moves], around)))
        ends = possible(self._find_candidates(self._matches[:low]))
        if low < len(self._lines):
            line, after = self._lines[low], f" after line {self._lines[low - 1].place}" if low else ""
            problem = f"the plan must end{after}" if ends and not could else f"no plan has this step there{after}"
            return ReadingProblem(problem if low or ends else "no plan begins with this step", line, could)
        if not self._lines:
            return ReadingProblem("no plan is without steps", None, could)
        return ReadingProblem("a step is missing after this one", self._lines[-1], could)

    def guess_word(self) -> Word | None:
        """The terminals of the steps, with decisions filled in as far as they go; None where a step has none."""
        matches = self._matches[::-1] if self._prefix else self._matches
        low, high = 0, len(matches) + 1
        while high - low > 1:
            middle = (low + high) // 2
            made = _build_candidates(self._pda, self._texts.silent, matches[:middle], "after")
            if Lookahead(made.pda).completable().value == "no":
                high = middle
            else:
                low = middle
        made = _build_candidates(self._pda, self._texts.silent, matches[:low], "")
        ended = PDA(
            made.pda.transitions, start=made.pda.start_state, stack=made.pda.start_stack, check=False,
            accepting=[state for state in made.pda.states if state[1] == low],  # type: ignore[index]
        )  # fmt: skip
        begun = Lookahead(ended).shortest_word() or ()
        rest = [sorted({move.read for move in found if move.read is not None}) for found in matches[low:]]
        return (*begun, *(names[0] for names in rest if names))


@dataclass(frozen=True)
class Reading:
    """What a text describes.

    Attributes:
        words: the words that it is outright.
        lines: its steps, where it is a list of steps.
        steps: the same as steps of an automaton, where they stand for the words of one.
        guess: where it describes nothing, a word with its steps; None where there is none.
        wrong: why it describes nothing, whatever the constraints and limits; None where it describes something.
    """

    words: tuple[Word, ...] = ()
    lines: tuple[StepLine, ...] = ()
    steps: StepLines | None = None
    candidates: tuple[CandidateWords, ...] = ()
    guess: Word | None = None
    wrong: ReadingProblem | None = None

    def within(self, rules: PDA | None = None, *, max_states: int = 20_000) -> Word | None:
        """A word that the text stands for and that keeps the rules (none at all where left out); None for none.

        Raises:
            Undecided: the budget of states ran out before that was known.
        """
        for word in self.words:
            if rules is None or rules.accepts(word):
                return word
        found = (one.find_word(rules or _NO_RULES, max_states) for one in self.candidates)
        return next((word for word in found if word is not None), None)


def read_plan(text: str, source: Source) -> Reading:
    """What a text describes, of the plans of a grammar or an automaton; its constraints and limits are not looked at.

    Args:
        text: the plan, in one of the four forms (see the module).
        source: the rules whose terminals, labels and texts are meant.

    Raises:
        NotationError: it is in none of the forms; with its line, and the nearest name.
        Undecided: there are too many ways to read it.
    """
    return _PlanReader(source).read_text(text)


def read_plan_text(text: str, source: Source) -> Word:
    """The word of a plan that somebody wrote: one that keeps all the rules, where it can be read as one.

    What is no plan gives a word that is none either, for :func:`~formal_llm.planning.checking.verify.verify` to
    explain why; where there is no such word, an error. The arguments are those of :func:`read_plan`.

    Raises:
        NotationError: as :func:`read_plan`; or the text describes no plan and no word has its steps; or it may be
            several words that differ in terminals with the same label.
        Undecided: there are too many ways to read it.
    """
    reader = _PlanReader(source)
    reading = reader.read_text(text)
    word = reading.within(reader.pda) if reader.pda is not None else reading.within()
    if word is not None and reader.pda is not None:
        _check_shared(word, reading, reader.pda)
    word = reading.within() if word is None else word
    word = reading.guess if word is None else word
    if word is None:
        raise (reading.wrong or ReadingProblem("no plan is written like this")).to_error()
    return word


def find_names(text: str, source: Source) -> Word:
    """The terminals that a text may name: by name, by label, by a text of the rules; none where it names none.

    Raises:
        NotationError: a label that several terminals share, where no decisions determine which one is meant.
    """
    texts = _PlanReader(source).texts
    moves = texts.find_moves(text)
    names = tuple(name for name in texts.reading if any(move.read == name for move in moves))
    names = names or texts.find_terminals(text)
    if len(names) > 1 and not any(move.decision for move in moves):
        raise NotationError(f"{text!r} may be {' or '.join(names)}; write the name that is meant")
    return names


class _PlanReader:
    def __init__(self, source: Source) -> None:
        automaton = as_automaton(source_of(source, "read_plan_text"))
        self.pda = automaton if isinstance(automaton, PDA) else None
        #: The automaton without what is put on top of it, and the grammar that it was made from.
        self.base = base_with_clock(self.pda) if self.pda else None
        self._cfg = self.base.cfg if self.base is not None else None
        vocabulary = Vocabulary(automaton)
        self.texts = StepTexts(self.base, vocabulary)
        self._terminals = dict.fromkeys(vocabulary.terminals)
        self._label = vocabulary.label
        self._prefix = vocabulary.order == "prefix"

    def read_text(self, text: str) -> Reading:
        rows = [(place, row) for place, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1) if row.strip()]
        if not rows or (text.strip() in ("ε", EMPTY) and "ε" not in self._terminals):
            return Reading(words=((),))
        row = rows[0][1].strip()
        if row[0] in "{[" and not _BULLETS.match(row) and not self._is_step(row):
            return self._read_json(text)
        if len(rows) == 1:
            names = [
                unquote_text(one) if one[0] == one[-1] == '"' and len(one) > 1 else one for one in _NAME.findall(row)
            ]
            is_word = all(name in self._terminals for name in names)
            if is_word and (len(names) > 1 or row not in self._terminals):
                if self._is_step(row):
                    raise self._error(f"{row!r} is a step and a word; write JSON, a list of names", *rows[0])
                return Reading(words=(tuple(names),))
            if "(" in row and not self._is_step(split_mark(row)[0]) and _CALL.fullmatch(row):
                return self._read_call(*rows[0])
            known = sum(name in self._terminals for name in names)
            if 2 * known > len(names) > 1 and not self._find_flow(row):  # a slip in a word
                return Reading(words=(tuple(self._resolve_name(name, *rows[0]) for name in names),))
        return self._read_lines([self._read_line(*row) for row in rows])

    @staticmethod
    def _error(problem: str, place: int | None, row: str) -> NotationError:
        return NotationError(problem, file="<plan>", line=place, source_line=row or None)

    def _is_step(self, text: str) -> bool:
        return bool(self.texts.find_moves(text) or self.texts.find_terminals(text))

    def _resolve_name(self, text: str, place: int | None = None, row: str = "") -> str:
        if text in self._terminals:
            return text
        names = self.texts.find_terminals(text)
        if len(names) > 1:
            raise self._error(f"{text!r} may be {' or '.join(names)}; write the name that is meant", place, row)
        if not names:
            raise self._error(unknown("step", text, self.texts.shown), place, row)
        return names[0]

    # -- JSON and calls -----------------------------------------------------------------------------------------

    def _read_json(self, text: str) -> Reading:
        try:
            data: Any = parse_json(text)
            if isinstance(data, dict) and "tree" in data:
                return self._read_tree(Plan.from_json(text), data)
            names = data["plan" if "plan" in data else "word"] if isinstance(data, dict) else data
        except (ValueError, KeyError) as error:
            problem = f"this is neither the JSON of a plan nor a list of names: {error}"
            raise NotationError(problem, file="<plan>") from None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise NotationError("a plan in JSON is a list of names, or an object with such a list as its 'plan'")
        return Reading(words=(tuple(map(self._resolve_name, names)),))

    def _read_tree(self, plan: Plan, data: dict[str, object]) -> Reading:
        made = json.loads(plan.to_json())
        if wrong := [part for part in ("word", "call", "steps") if part in data and data[part] != made[part]]:
            raise NotationError(
                f"this plan contradicts itself: its {' and '.join(wrong)} and its tree are of two plans"
            )
        if not plan.complete:
            return Reading(wrong=ReadingProblem("the plan is not finished"))
        if self._cfg is not None:
            if not _is_derivation(plan.tree, self._cfg):
                return Reading(wrong=ReadingProblem("the tree of the plan is no derivation of the grammar"))
            return Reading(words=(plan.word,))
        if self.base is None:
            return Reading(words=(plan.word,))
        if not is_flat(plan.tree):
            return Reading(wrong=ReadingProblem("the plan has a tree, and these rules have none"))
        nodes = [(node.symbol or None, node.text or "", node.question) for node in plan.tree.children]
        key = {m: (m.read, m.text, m.question if m.decision else None) for m in self.base.transitions}
        silent = {move for move in key if move.read is None and not move.text}
        found = _build_candidates(self.base, silent, [{m for m, one in key.items() if one == node} for node in nodes])
        if Lookahead(found.pda).completable().value == "no":
            return Reading(wrong=ReadingProblem("the automaton has no such steps, one after the other"))
        return Reading(candidates=(found,))

    def _list_plans(self, word: Word) -> Iterator[Plan]:
        """The plans that a word is, one for each derivation.

        Raises:
            Undecided: there are too many.
        """
        assert self._cfg is not None and self.base is not None
        found = derivations(self._cfg, word, _DERIVATIONS)
        for one in found.found:
            yield Plan(
                "", build_tree(_list_moves(self._cfg, one), self._cfg.label, self._cfg.start), order=self.base.order
            )
        if not found.complete:
            raise Undecided("the plan has too many derivations; write its word")

    def _read_call(self, place: int, row: str) -> Reading:
        names = _PIECE.findall(row.split(" = ", 1)[-1])
        word = tuple(self._resolve_name(name, place, row) for name in names if name not in ("(", ")", ","))
        return self._compare_calls(word, row.replace(" ", "").strip(), StepLine(place, row, row.strip()))

    def _compare_calls(self, word: Word, written: str, line: StepLine) -> Reading:
        """The word of calls, where a plan that it is has these calls."""
        if self._cfg is None or not self._prefix:
            return Reading(wrong=ReadingProblem(f"plans of these rules are no nested calls; {FORMS}", line))
        if not self._cfg.accepts(word):
            return Reading(guess=word, wrong=ReadingProblem("no plan has these calls", line))
        found = ""
        for plan in self._list_plans(word):
            found = str(plan.call or "").replace(" ", "")
            if written in (found, found.split("=", 1)[-1]):
                return Reading(words=(word,))
        shown = f"; its names are {found}" if found else ""
        return Reading(
            guess=None,
            wrong=ReadingProblem(
                f"no plan has these calls: the brackets say what each tool is applied to{shown}", line
            ),
        )

    # -- steps, one a line --------------------------------------------------------------------------------------

    def _read_line(self, place: int, row: str) -> StepLine:
        try:
            if self._is_step(row.strip()):
                return StepLine(place, row, row.strip())
        except NotationError as error:
            raise self._error(str(error), place, row) from None
        text, number = split_mark(row)
        return StepLine(place, row, text, number)

    def _read_lines(self, lines: list[StepLine]) -> Reading:
        before = 0
        for line in lines:
            if line.number is not None and line.number != before + 1:
                raise self._error(f"this step has the number {line.number}, and {before + 1} comes next", *line[:2])
            before = line.number or before
        cfg = self._cfg
        if cfg is not None and any(production.text for production in cfg.productions):
            return self._read_told(lines)
        flows = [self._find_flow(line.text) for line in lines] if cfg is not None and self._prefix else []
        if any(inputs for _, inputs in filter(None, flows)):
            return self._read_flow(lines, flows)
        for line in lines:
            try:
                known = self._is_step(line.text)
            except NotationError as error:
                raise self._error(str(error), *line[:2]) from None
            if not known:
                names = list(dict.fromkeys([*self.texts.printed, *self.texts.shown]))
                shown = () if did_you_mean(line.text, names) else tuple(sorted(self.texts.shown))[:20]
                problem = f"{unknown('step', line.text, names)}; {FORMS}"
                raise NotationError(problem, file="<plan>", line=line.place, source_line=line.source, expected=shown)
        if self.base is None:
            names = [self._resolve_name(line.text, *line[:2]) for line in (lines[::-1] if self._prefix else lines)]
            return Reading(words=(tuple(names),), lines=tuple(lines))
        steps = StepLines(self.base, self.texts, lines)
        if Lookahead(steps.candidates.pda).completable().value != "no":
            return Reading(lines=tuple(lines), steps=steps, candidates=(steps.candidates,))
        wrong = steps.explain_failure(lambda one: Lookahead(one.pda).completable().value != "no")
        return Reading(lines=tuple(lines), steps=steps, guess=steps.guess_word(), wrong=wrong)

    def _find_flow(self, text: str) -> tuple[str, tuple[str | int, ...]] | None:
        """The tool of a line, and the inputs and numbers of steps that it is applied to; None for what is no step."""
        if len(names := self.texts.find_terminals(text)) == 1:
            return names[0], ()
        for split in re.finditer(" on ", text):
            tool = self.texts.find_terminals(text[: split.start()])
            inputs = self._split_inputs(text[split.end() :].split(" and "))
            if len(tool) == 1 and inputs is not None:
                return tool[0], inputs
        return None

    def _split_inputs(self, parts: list[str]) -> tuple[str | int, ...] | None:
        """What a tool is applied to; the label of an input may itself hold "and"."""
        ways: dict[int, tuple[str | int, ...]] = {0: ()}
        for end in range(1, len(parts) + 1):
            for start in range(max(0, end - 8), end):
                part = " and ".join(parts[start:end]).strip()
                result, names = _RESULT.fullmatch(part), self.texts.find_terminals(part)
                if start in ways and (result or len(names) == 1):
                    ways.setdefault(end, (*ways[start], int(result[1]) if result else names[0]))
        return ways.get(len(parts))

    def _read_flow(
        self, lines: Sequence[StepLine], flows: Sequence[tuple[str, tuple[str | int, ...]] | None]
    ) -> Reading:
        """Steps that say what they are applied to: the calls that they make, in any order in which they can be made."""
        made: dict[int, Call] = {}
        for number, (line, flow) in enumerate(zip(lines, flows, strict=True), 1):
            if flow is None:
                raise self._error(f"{unknown('step', line.text, self.texts.shown)}; {FORMS}", *line[:2])
            parts = []
            for one in flow[1]:
                if isinstance(one, int) and one not in made:
                    raise self._error(
                        f"there is no result of step {one} here: each is made before, and used once", *line[:2]
                    )
                parts.append(made.pop(one) if isinstance(one, int) else Call(one, one))
            made[number] = Call(flow[0], flow[0], tuple(parts))
        if len(made) > 1:
            unused = lines[min(made) - 1]
            raise self._error("the result of this step is not used by another step", *unused[:2])
        call = made[len(lines)]
        reading = self._compare_calls(tuple(one.name for one in call.walk()), str(call).replace(" ", ""), lines[-1])
        tools = [one.name for one in call.walk() if one.arguments or any(one.name == f[0] for f in flows if f)]
        if reading.words and tools != [flow[0] for flow in reversed(flows) if flow] and self._has_order():
            raise self._error(
                f"rules about order are judged in the order of the calls, and these steps are in another one; "
                f"write the plan as calls: {call}", *lines[0][:2]
            )  # fmt: skip
        return replace(reading, lines=tuple(lines))

    def _has_order(self) -> bool:
        return self.pda is not None and len(self.pda.factors) > 1

    def _fill_selections(self, move: Transition, line: str) -> Word:
        """What a production with a text becomes, with its selections as the line has them."""
        chosen = line.removeprefix(fold_text(one_line(move.text))).removeprefix(": ").split(", ")
        push: list[str] = []
        for symbol in move.push:
            members = selection_members(symbol)
            push += (name for name in members if fold_text(self._label(name)) in chosen) if members else [symbol]
        return tuple(push)

    def _read_told(self, lines: Sequence[StepLine]) -> Reading:
        """Steps of a grammar whose productions have texts, which speak for their terminals: as plans print them."""
        assert self._cfg is not None and self.base is not None
        known = dict.fromkeys(one_line(p.text) for p in self._cfg.productions if p.text)
        heads = {fold_text(text) for text in known}
        matches: list[set[Transition]] = []
        for line in lines:
            form = fold_text(line.text)
            cuts = [form, *(form[: at.start()] for at in re.finditer(": | on ", form))]
            moves = {m for m in self.base.transitions if m.text and fold_text(one_line(m.text)) in cuts}
            moves = {replace(m, push=self._fill_selections(m, form)) for m in moves}
            moves |= {
                one for cut in cuts for name in self.texts.find_terminals(cut) for one in self.texts.reading[name]
            }
            if not moves:
                raise self._error(f"{unknown('step', line.text, [*known, *self.texts.shown])}; {FORMS}", *line[:2])
            matches.append(moves)
        silent = {move for move in self.base.transitions if fold_text(one_line(move.text)) not in heads}
        filled = [move for moves in matches for move in moves]
        pda = PDA(
            dict.fromkeys([*self.base.transitions, *filled]), start=self.base.start_state, check=False,
            accepting=self.base.accepting_states, stack=self.base.start_stack,
        )  # fmt: skip
        found = _build_candidates(pda, silent, matches[::-1] if self._prefix else matches)
        written = [fold_text(line.text) for line in lines]
        several: list[Word] = []
        every = ((word, plan) for word in words(found.pda, 8 * len(lines) + 8) for plan in self._list_plans(word))
        for word, plan in islice(every, _TOLD):
            if [fold_text(str(step).split(": ", 1)[1]) for step in plan.steps] == written:
                several.append(word)
                if self.pda is None or self.pda.accepts(word):
                    return Reading(words=(word,), lines=tuple(lines))
        if several:  # there may be longer words that print the same
            raise Undecided("of the words that print these steps not all could be looked at; write the plan's word")
        problem = "no plan prints these steps; write its word, or JSON, to see what is wrong"
        raise self._error(problem, *lines[0][:2])


def _is_derivation(tree: Node, cfg: CFG) -> bool:
    """Whether a tree is a derivation of the grammar, from any symbol: each node a production, to the text."""
    known = {(p.head, p.body, p.text) for p in cfg.productions}
    for node in tree.walk():
        below = tuple(child.symbol for child in node.children)
        among = selection_members(node.symbol)
        if node.terminal:
            fits = not below and node.symbol in cfg.terminals
        elif (again := parse_repetition(node.symbol)) is not None:
            count = len(below)
            fits = set(below) <= {again.of} and again.least <= count and (again.most is None or count <= again.most)
            fits = fits and not node.open and not node.text
        elif among is not None:
            fits = bool(below) and list(below) == [name for name in among if name in below]
        else:
            fits = not node.open and (node.symbol, below, node.text) in known
        if not fits:
            return False
    return True


def _list_moves(cfg: CFG, derivation: Sequence[Production]) -> Iterator[Transition]:
    """The moves of a leftmost derivation."""
    todo, chosen = [cfg.start], iter(derivation)
    while todo:
        symbol = todo.pop()
        if symbol in cfg.terminals:
            yield Transition(0, symbol, symbol, 0)
        else:
            production = next(chosen)
            yield Transition(0, None, symbol, 0, production.body, production.text or "", production)
            todo += reversed(production.body)


def _check_shared(word: Word, reading: Reading, rules: PDA) -> None:
    """Raise where another word that keeps the rules has the same text, since labels are shared."""
    labels = {name: rules.label(name) for name in rules.terminals}
    if len(set(labels.values())) == len(labels) or any(move.decision for move in rules.transitions):
        return
    for candidates in reading.candidates:
        for other in islice(words(candidates.pda, len(word)), _OTHERS):
            if other != word and [*map(labels.get, other)] == [*map(labels.get, word)] and rules.accepts(other):
                one, two = next((a, b) for a, b in zip(word, other, strict=True) if a != b)
                raise NotationError(f"{labels[one]!r} may be {one} or {two}; write the name that is meant")
