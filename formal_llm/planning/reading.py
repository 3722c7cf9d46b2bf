"""Reading a plan: JSON, a word, nested calls, or one step a line. Anything else is refused, with its line.

- JSON: ``{"plan": [names]}``, a list of names, or the JSON that a plan prints.
- A word: names of terminals with blanks between them, on one line; those with blanks in quotes.
- Nested calls, ``translation(captioning(image))``: the names in order are the word, and its plan must have these calls.
- One step a line, in the order of carrying out: a name, a label, or a text of the rules; on one line " / " parts them.
  Bullets and numbers before it are dropped; nothing else may stand there. Decisions of charts may be left out. Steps of
  nested calls say what they are applied to ("Use X on A and the result of step 1"): every order is right in which a
  result is made before its use. Where productions have texts, these are the steps, written as a plan prints them.

Lines may stand for many words, as they need not hold decisions, and as a text speaks for the terminals of its
production. These words are the language of an automaton, so whether one of them keeps the rules is whether a product
has a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

from formal_llm.authored.files import parse_json
from formal_llm.automata import CFG, PDA, Lookahead, Source, Transition, Word
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import Order, selection_members, turn_word, unquote_text
from formal_llm.errors import NotationError, Undecided, did_you_mean, unknown
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.printed import WAYS, Flow, GrammarSteps, StepLine, StepTexts, list_reads
from formal_llm.planning.plans.tree import Node, is_flat, result_name, takes_several
from formal_llm.planning.plans.vocabulary import EMPTY, SLASH, Vocabulary
from formal_llm.planning.source import source_of

_BULLETS = re.compile(r"(?:[-*+•]\s+|\[[ xX]\]\s+)+")
_NUMBER = re.compile(r"(?:step\s+)?\(?(\d{1,9})[.:)]\s+", re.IGNORECASE)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_CALL = re.compile(r"(?:\w+ = )?[^\s(),=]+(?: ?\(.*\))?")
_PIECE = re.compile(r"[^\s(),]+|[(),]")
_RESULT = re.compile(r"(?:the )?result of step (\d{1,9})", re.IGNORECASE)
#: How many words that share labels are looked at.
_OTHERS = 100
#: With more printed steps than this it is not determined which of them were possible at the place of a wrong one.
_TRIED = 100
_NO_RULES = PDA([], start=0, accepting=[0], check=False)
#: How plans can be written, for errors.
FORMS = "a plan is one step a line with nothing beside it, a word (names with blanks between), nested calls, or JSON"


class ReadingProblem(NamedTuple):
    """Why a text describes no plan: what is wrong, the line where it is (None for none), what was possible there."""

    problem: str
    line: StepLine | None = None
    expected: tuple[str, ...] = ()

    def to_error(self) -> NotationError:
        """The same as an error."""
        place, source = (self.line.place, self.line.source) if self.line is not None else (None, None)
        return NotationError(self.problem, file="<plan>", line=place, source_line=source, expected=self.expected)


def split_mark(row: str) -> tuple[str, int | None]:
    """A line without bullets and number, and the number."""
    text = row.strip()
    found = _BULLETS.match(text)
    text = text[found.end() :] if found else text
    numbered = _NUMBER.match(text)
    return (text[numbered.end() :], int(numbered[1])) if numbered else (text, None)


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
        return Lookahead(apply_rules(self.pda, rules), max_states=max_states).shortest_word()


def apply_rules(pda: PDA, rules: PDA) -> PDA:
    """The words of an automaton that keep the constraints of a product and its limits."""
    plain = PDA(
        pda.transitions, start=pda.start_state, accepting=pda.accepting_states, stack=pda.start_stack,
        symbols=rules.symbols, order=rules.order, check=False,
    )  # fmt: skip
    kept = constrained(plain, (factor.without_limits for factor in rules.factors[1:]))
    return kept.with_limits(rules.limits, rules.terminals)


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

    Args:
        pda: the automaton, whose transitions print steps.
        silent: those that print none.
        lines: the steps.
        matches: for each line the transitions that it may be.
        known: the steps that there are, with their transitions.

    Attributes:
        candidates: the words; there may be none.
    """

    def __init__(
        self, pda: PDA, silent: Collection[Transition], lines: Sequence[StepLine],
        matches: Sequence[Collection[Transition]], known: Mapping[str, Collection[Transition]],
    ) -> None:  # fmt: skip
        self.pda, self._silent, self._lines, self._prefix = pda, silent, lines, pda.order == "prefix"
        self._matches, self._known = matches, known
        self.candidates = self._find_candidates(matches)

    def _find_candidates(self, matches: Sequence[Collection[Transition]], around: Around = "") -> CandidateWords:
        found = _build_candidates(self.pda, self._silent, turn_word(matches, self.pda.order), around)
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
        could: tuple[str, ...] = ()
        if len(self._known) <= _TRIED:
            ways = ((text, [*self._matches[:low], moves]) for text, moves in self._known.items())
            could = tuple(text for text, matches in ways if possible(self._find_candidates(matches, around)))
        ends = possible(self._find_candidates(self._matches[:low]))
        if low < len(self._lines):
            line, after = self._lines[low], f" after line {self._lines[low - 1].place}" if low else ""
            problem = f"the plan must end{after}" if ends and not could else f"no plan has this step there{after}"
            return ReadingProblem(problem if low or ends else "no plan begins with this step", line, could)
        if not self._lines:
            return ReadingProblem("no plan is without steps", None, could)
        return ReadingProblem("a step is missing after this one", self._lines[-1], could)

    def guess_word(self) -> Word | None:
        """The terminals of the steps, with what prints nothing filled in as far as some plan goes; None for a plan."""
        matches = turn_word(self._matches, self.pda.order)
        low, high = 0, len(matches) + 1
        while high - low > 1:
            middle = (low + high) // 2
            made = _build_candidates(self.pda, self._silent, matches[:middle], "after")
            low, high = (low, middle) if Lookahead(made.pda).completable().value == "no" else (middle, high)
        made = _build_candidates(self.pda, self._silent, matches[:low], "")
        ended = PDA(
            made.pda.transitions, start=made.pda.start_state, stack=made.pda.start_stack, check=False,
            accepting=[state for state in made.pda.states if state[1] == low],  # type: ignore[index]
        )  # fmt: skip
        word = list(Lookahead(ended).shortest_word() or ())
        for found in matches[low:]:
            word += min((list_reads(move) for move in found), default=())
        return None if self.pda.accepts(word) else tuple(word)


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
        self._order: Order = vocabulary.order

    def read_text(self, text: str) -> Reading:
        rows = [(place, row) for place, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1) if row.strip()]
        if not rows or (text.strip() in ("ε", EMPTY) and "ε" not in self._terminals):
            return Reading(words=((),))
        row = rows[0][1].strip()
        pieces = row.split(SLASH) if len(rows) == 1 and not self._is_step(row) else [row]
        if len(pieces) > 1 and (row[0] not in "{[" or all(map(self._is_step, pieces))):
            lines = [self._read_line(rows[0][0], piece) for piece in pieces]
            all_names = all(piece in self._terminals for piece in pieces)
            word = tuple(turn_word(pieces, self._order))
            return self._read_names(word, lines) if all_names else self._read_lines(lines)
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
            if ("(" in row or " = " in row) and not self._is_step(split_mark(row)[0]) and _CALL.fullmatch(row):
                return self._read_call(*rows[0])
            known = sum(name in self._terminals for name in names)
            if 2 * known > len(names) > 1 and not any(self._find_flows(row)):  # a slip in a word
                return Reading(words=(tuple(self._resolve_name(name, *rows[0]) for name in names),))
        lines = [self._read_line(*row) for row in rows]
        return self._read_names((row,), lines) if len(rows) == 1 and row in self._terminals else self._read_lines(lines)

    def _read_names(self, word: Word, lines: list[StepLine]) -> Reading:
        """Names in the order of carrying out: they are a word, and may be steps, which need not hold all of one."""
        accepted = self.base is None or self.base.accepts(word)
        if not accepted and self._cfg is not None and len(word) > 1:
            return Reading(words=(word,))
        try:
            reading = self._read_lines(lines)
        except NotationError:
            if not accepted:
                raise
            return Reading(words=(word,))
        if not accepted:
            return reading
        return Reading(words=(word,)) if reading.wrong else replace(reading, words=(word, *reading.words))

    @staticmethod
    def _error(problem: str, place: int | None, row: str) -> NotationError:
        return NotationError(problem, file="<plan>", line=place, source_line=row or None)

    def _is_step(self, text: str) -> bool:
        try:
            return bool(self.texts.find_moves(text) or self.texts.find_terminals(text))
        except NotationError:  # it may be several
            return True

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

    def _read_call(self, place: int, row: str) -> Reading:
        """Nested calls: their names in order are the word, where a plan has these calls."""
        result, _, call = row.rpartition("=")
        calls = _parse_call(_PIECE.findall(call))
        if calls is None:
            raise self._error("these brackets are no call, such as tool(input, tool(input))", place, row)
        word = tuple(self._resolve_name(name, place, row) for name, _ in calls)
        line, cfg = StepLine(place, row, row.strip()), self._cfg
        if cfg is None or self._order == "forward":
            return Reading(wrong=ReadingProblem(f"plans of these rules are no nested calls; {FORMS}", line))
        renamed = [cfg.start]
        for name in renamed:  # it grows
            bodies = [p.body for p in cfg.by_head[name] if len(p.body) == 1 and p.body[0] in cfg.nonterminals]
            renamed += (body[0] for body in bodies if body[0] not in renamed and not takes_several(body[0]))
        heads = [name for name in renamed if result.strip() in ("", result_name(cfg.label(name)))]
        flows = [[((name,), tuple(inputs))] for name, (_, inputs) in zip(word, calls, strict=True)]
        steps = GrammarSteps(cfg, [("inputs", name, (1,)) for name in heads], flows=flows)
        verdict = Lookahead(steps.pda).completable().value
        if verdict == "unknown":
            raise Undecided("whether a plan has these calls was not found out; write its word")
        if verdict == "yes":
            return Reading(words=(word,))
        known = cfg.accepts(word)
        problem = "no plan has these calls" + (": the brackets say what each tool is applied to" if known else "")
        return Reading(guess=None if known else word, wrong=ReadingProblem(problem, line))

    # -- steps, one a line --------------------------------------------------------------------------------------

    def _read_line(self, place: int, row: str) -> StepLine:
        text, number = (row.strip(), None) if self._is_step(row.strip()) else split_mark(row)
        try:
            self.texts.find_moves(text)
        except NotationError as error:
            raise self._error(error.problem, place, row) from None
        return StepLine(place, row, text, number)

    def _read_lines(self, lines: list[StepLine]) -> Reading:
        reading = self._read_unnumbered(lines)
        before = 0
        for line in lines:
            if line.number is not None and line.number != before + 1:
                problem = f"this step is number {before + 1}, and it is numbered {line.number}"
                return Reading(lines=tuple(lines), wrong=ReadingProblem(problem, line))
            before = line.number or before
        return reading

    def _read_unnumbered(self, lines: list[StepLine]) -> Reading:
        cfg = self._cfg
        flows = [list(self._find_flows(line.text)) for line in lines]
        told = cfg is not None and any(production.text for production in cfg.productions)
        if cfg is not None and (told or any(inputs for ways in flows for _, inputs in ways)):
            self._check_known(lines, lines if told else flows, self.texts.shown)
            if all(len(set(map(_list_results, ways))) < 2 for ways in flows):  # no label reads like a result
                ordered = self._order_by_flow(lines, flows)
                if not isinstance(ordered, ReadingProblem):
                    lines, flows = ordered
                elif not told:  # a text does not say what it is applied to
                    return Reading(lines=tuple(lines), wrong=ordered)
            begin = [("flat", cfg.start)] + [("root", cfg.start)] * (self._order == "prefix")
            made = GrammarSteps(cfg, begin, lines, flows, self.texts)
            self._check_known(lines, made.matches, made.shown)
            return self._read_steps(StepLines(made.pda, made.silent, lines, made.matches, made.shown), lines)
        moves = [self.texts.find_moves(line.text) for line in lines]
        known = [found or self.texts.find_terminals(line.text) for found, line in zip(moves, lines, strict=True)]
        self._check_known(lines, known, self.texts.printed)
        if self.base is None:
            names = [self._resolve_name(line.text, *line[:2]) for line in turn_word(lines, self._order)]
            return Reading(words=(tuple(names),), lines=tuple(lines))
        return self._read_steps(StepLines(self.base, self.texts.silent, lines, moves, self.texts.printed), lines)

    def _check_known(
        self, lines: Sequence[StepLine], matches: Sequence[Collection[object]], printed: Collection[str]
    ) -> None:
        """Raise where a line is no step."""
        for line in (line for line, match in zip(lines, matches, strict=True) if not match):
            names = list(dict.fromkeys([*printed, *self.texts.shown]))
            shown = () if did_you_mean(line.text, names) else tuple(sorted(self.texts.shown))[:20]
            problem = f"{unknown('step', line.text, names)}; {FORMS}"
            raise NotationError(problem, file="<plan>", line=line.place, source_line=line.source, expected=shown)

    @staticmethod
    def _read_steps(steps: StepLines, lines: Sequence[StepLine]) -> Reading:
        def is_possible(one: CandidateWords) -> bool:
            return Lookahead(one.pda).completable().value != "no"

        if is_possible(steps.candidates):
            return Reading(lines=tuple(lines), steps=steps, candidates=(steps.candidates,))
        wrong = steps.explain_failure(is_possible)
        return Reading(lines=tuple(lines), steps=steps, guess=steps.guess_word(), wrong=wrong)

    # -- steps of nested calls ----------------------------------------------------------------------------------

    def _find_flows(self, text: str) -> Iterator[Flow]:
        """The tools that a line of nested calls may be, with what each is applied to."""
        if self._cfg is None or self._order == "forward":
            return
        if names := self.texts.find_terminals(text, printed=True):
            yield names, ()
        for split in re.finditer(" on ", text):
            if tools := self.texts.find_terminals(text[: split.start()], printed=True):
                for inputs in self._split_inputs(text[split.end() :].split(" and ")):
                    yield tools, inputs

    def _split_inputs(self, parts: list[str]) -> list[tuple[Word | int, ...]]:
        """The ways to read what a tool is applied to; the label of an input may itself hold "and"."""
        ways: list[list[tuple[Word | int, ...]]] = [[()], *([] for _ in parts)]
        for end in range(1, len(parts) + 1):
            for start in range(max(0, end - 8), end):
                part = " and ".join(parts[start:end]).strip()
                result, names = _RESULT.fullmatch(part), self.texts.find_terminals(f"Use {part}", printed=True)
                for one in ([int(result[1])] if result else []) + ([names] if names else []):
                    ways[end] += [(*way, one) for way in ways[start]]
            if len(ways[end]) > WAYS:
                raise Undecided(f"there are too many ways to read {' and '.join(parts)!r}")
        return ways[-1]

    def _order_by_flow(
        self, lines: list[StepLine], flows: list[list[Flow]]
    ) -> tuple[list[StepLine], list[list[Flow]]] | ReadingProblem:
        """The steps in the order in which a plan prints them; or the result that is not used as it can be."""
        below: dict[int, tuple[int, ...]] = {}
        unused: dict[int, None] = {}
        for number, (line, ways) in enumerate(zip(lines, flows, strict=True), 1):
            below[number] = _list_results(ways[0]) if ways else ()
            for one in below[number]:
                if one not in unused:
                    problem = f"there is no result of step {one} here: each is made before, and used once"
                    return ReadingProblem(problem, line)
                del unused[one]
            unused[number] = None
        if len(unused) > 1:
            return ReadingProblem("the result of this step is not used by another step", lines[min(unused) - 1])
        order: list[int] = []
        todo = [len(lines)]
        while todo:
            order.insert(0, todo.pop())
            todo += reversed(below[order[0]])
        if order != sorted(order) and self.pda is not None and len(self.pda.factors) > 1:
            raise self._error(
                "rules about order are judged in the order of the calls, and these steps are in another one; "
                "write the plan as nested calls", *lines[0][:2]
            )  # fmt: skip
        new = {number: at for at, number in enumerate(order, 1)}
        return [lines[number - 1] for number in order], [
            [
                (tools, tuple(new[one] if isinstance(one, int) else one for one in inputs))
                for tools, inputs in flows[n - 1]
            ]
            for n in order
        ]


def _list_results(flow: Flow) -> tuple[int, ...]:
    return tuple(one for one in flow[1] if isinstance(one, int))


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


def _parse_call(pieces: Sequence[str]) -> list[tuple[str, list[int]]] | None:
    """The calls of a text with the numbers of their inputs; None where brackets and commas are not those of one."""
    calls: list[tuple[str, list[int]]] = []
    opened: list[int] = []
    before = ","
    for piece in pieces:
        if piece in ("(", ")", ","):
            if before in ("(", ",") or (piece == "(" and before == ")") or (piece != "(" and not opened):
                return None
            if piece == "(":
                opened.append(len(calls) - 1)
            elif piece == ")":
                opened.pop()
        else:
            if before not in ("(", ",") or (calls and not opened):
                return None
            if opened:
                calls[opened[-1]][1].append(len(calls) + 1)
            calls.append((piece, []))
        before = piece
    return calls if calls and not opened else None


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
