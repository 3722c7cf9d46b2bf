"""Reading a plan that anybody wrote: a person, a language model, this library.

Understood are:

- the steps of a plan, one a line, as they are printed: "Step 2: Use Colorization on the result of step 1";
- the same as people write them: by name or label, with bullets, check boxes, "1." or nothing, with or without "Use",
  with a remark behind, between lines that are no steps. What is left out is reported. ``strict`` allows none of this;
- the same on one line, with `` / `` or commas between the steps;
- a word, terminal names with blanks between them, those with blanks in quotes, and "ε" for the empty one;
- nested calls, "translation(captioning(input_image))";
- the JSON of a plan, or a JSON list of names.

All that a plan contains is read: the steps to the letter, their order, what they are applied to, the brackets, the
numbers. It does not contain everything, so a plan may stand for many words
(:mod:`~formal_llm.planning.reading.candidates`): the decisions of a flowchart are no steps, and the text of a
production speaks for its terminals. All these words are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

from formal_llm.automata import PDA, Lookahead, Source, Transition, Word
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.product import product
from formal_llm.automata.models.symbols import turn_word
from formal_llm.errors import NotationError, Undecided, unknown
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.plans.vocabulary import EMPTY, Vocabulary
from formal_llm.planning.reading.candidates import Around, CandidateWords, build_run_candidates, has_word
from formal_llm.planning.reading.explicit import (
    find_call_candidates,
    find_tree_candidates,
    format_call,
    is_derivation,
    looks_like_json,
    parse_call,
    read_json,
    read_names,
)
from formal_llm.planning.reading.line_grammar import GrammarLines
from formal_llm.planning.reading.one_line import split_steps
from formal_llm.planning.reading.phrases import MovePhrases, Naming, ProductionPhrases
from formal_llm.planning.reading.prose import (
    ReadingProblem,
    SkippedText,
    StepLine,
    StepPhrases,
    find_step,
    find_wrong_number,
    is_box,
    is_rule,
    numbered_lines,
    read_plan_lines,
    strip_emphasis,
    unknown_step,
)
from formal_llm.planning.source import source_of

#: With more printed steps than this it is not determined which of them were possible at the place of a wrong one.
_TRIED = 100


class AutomatonLines:
    """The words of an automaton that lines describe.

    Args:
        lines: the steps, from first to last; decisions may be among them.
        order: whether a run goes from the last step to the first.
        strict: whether only what is printed is understood.

    Attributes:
        candidates: the words; there may be none.

    Raises:
        NotationError: a line describes nothing of the automaton.
    """

    def __init__(self, pda: PDA, lines: Sequence[StepLine], order: Order, *, strict: bool) -> None:
        self._moves, self._lines, self._order = MovePhrases(pda), lines, order
        self._matches = [self._moves.find_transitions(line.text, strict=strict) for line in lines]
        for line, match in zip(lines, self._matches, strict=True):
            if not match:
                raise unknown_step(line.text, self._moves.printed, line.place, line.source)
        self.candidates = self._find_candidates(self._matches)

    def is_decision(self, at: int) -> bool:
        """Whether a line describes a decision, and so no step."""
        return all(move.decision for move in self._matches[at])

    def _find_candidates(self, matches: Sequence[Collection[Transition]], around: Around = "") -> CandidateWords:
        candidates = build_run_candidates(self._moves.pda, self._moves.silent, turn_word(matches, self._order), around)
        if self._order == "forward":
            return candidates
        return CandidateWords(
            candidates.pda, {move: len(matches) - 1 - line for move, line in candidates.lines.items()}
        )

    def explain_failure(self, possible: Callable[[CandidateWords], bool]) -> ReadingProblem:
        """Why no plan is described: the first line that no plan has there, after the lines before it.

        Args:
            possible: whether some of the words follow the rules.
        """
        around: Around = "before" if self._order == "prefix" else "after"
        low, high = 0, len(self._lines) + 1
        # Each beginning of the lines that some plan has, has only beginnings with which that is so: halving.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if possible(self._find_candidates(self._matches[:middle], around)) else (low, middle)
            )
        known = self._moves.printed
        could = []
        if len(known) <= _TRIED:
            before = self._matches[:low]
            could = [text for text, moves in known.items() if possible(self._find_candidates([*before, moves], around))]
        ends = possible(self._find_candidates(self._matches[:low]))
        if low < len(self._lines):
            line, after = self._lines[low], f" after line {self._lines[low - 1].place}" if low else ""
            problem = f"the plan must end{after}" if ends and not could else f"no plan has this step there{after}"
            problem = problem if low or ends else "no plan begins with this step"
            return ReadingProblem(problem, line, tuple(could))
        if not self._lines:
            return ReadingProblem("no plan is without steps", None, tuple(could))
        return ReadingProblem("a step is missing after this one", self._lines[-1], tuple(could))

    def guess_word(self) -> Word | None:
        """The terminals of the steps with decisions filled in as far as they go, where that is no word."""
        names = [
            tuple(name for name in self._moves.pda.terminals if name in {m.read for m in found})
            for found in turn_word(self._matches, self._order)
        ]
        word = fill_decisions([one for one in names if one], self._moves.pda)
        return None if self._moves.pda.accepts(word) else word


# -- decisions that were left out ------------------------------------------------------------------------------------


def fill_decisions(steps: Sequence[tuple[str, ...]], pda: PDA) -> Word:
    """A shortest word of an automaton that has these steps, and between them decisions.

    Where there is none, a word that has decisions filled in as far as some word begins with the steps; the other steps
    follow as they are. A step may be one of several terminals; the transitions determine which terminals are decisions.
    """
    found = _find_shortest_word(pda, steps, ends=True)
    if found is not None:
        return found
    low, high = 0, len(steps) + 1
    begun: Word = ()
    # Each beginning of the steps that can be gone on with has only beginnings with which that is so: halving.
    while high - low > 1:
        middle = (low + high) // 2
        word = _find_shortest_word(pda, steps[:middle], ends=False)
        if word is None:
            high = middle
        else:
            low, begun = middle, _cut_after_steps(word, steps[:middle])
    return (*begun, *(names[0] for names in steps[low:]))


def _find_shortest_word(pda: PDA, steps: Sequence[tuple[str, ...]], *, ends: bool) -> Word | None:
    """A shortest word that has the steps, or None; it may continue after them unless it ``ends`` there."""
    both = product(pda, _build_chain(steps, _list_decisions(pda), () if ends else pda.terminals))
    try:
        return Lookahead(both).shortest_word()
    except Undecided:
        return None


def _list_decisions(pda: PDA) -> dict[str, None]:
    return dict.fromkeys(t.read for t in pda.transitions if t.decision and t.read is not None)


def _build_chain(steps: Sequence[tuple[str, ...]], decisions: Iterable[str], after: Iterable[str]) -> PDA:
    """The finite automaton that reads the steps, decisions between them, and after them anything of ``after``."""
    end = len(steps)
    moves = [Transition(at, name, None, at + 1) for at, names in enumerate(steps) for name in names]
    moves += [Transition(at, name, None, at) for at in range(end + 1) for name in decisions]
    moves += [Transition(end, name, None, end) for name in after]
    return PDA(moves, start=0, accepting=[end], check=False)


def _cut_after_steps(word: Word, steps: Sequence[tuple[str, ...]]) -> Word:
    """The beginning of a word that ends with the last of the steps."""
    at = 0
    for place, name in enumerate(word):
        if at == len(steps):
            return word[:place]
        at += name in steps[at]
    return word


#: Of a line on which more than half of the words are names of terminals, the others are meant to be.
_HALF = 0.5
#: How many words that a text stands for are looked at, to see whether shared labels part them.
_OTHERS = 100
_EMPTIES = ("ε", EMPTY)
_NO_RULES = PDA([], start=0, accepting=[0], check=False)


@dataclass(frozen=True)
class Reading:
    """What a text describes.

    Attributes:
        candidates: the languages of the words that it stands for.
        lines: its steps, where it is a list of steps.
        skipped: what was left out.
        guess: where it describes nothing, a word that has its steps and is none of the language; None where there is
            none.
        wrong: why it describes nothing, whatever the constraints and limits; None where it describes something.
        moved: its lines as steps of an automaton, where they are.
    """

    words: tuple[Word, ...] = ()
    candidates: tuple[CandidateWords, ...] = ()
    lines: tuple[StepLine, ...] = ()
    skipped: tuple[SkippedText, ...] = ()
    guess: Word | None = None
    wrong: ReadingProblem | None = None
    moved: AutomatonLines | None = None

    def within(self, rules: PDA | None = None, *, max_states: int = 20_000) -> Word | None:
        """A word that the text stands for and that follows the rules; None where there is none.

        Args:
            rules: a product, of which the constraints and the limits count, or an automaton, of which the limits do;
                none at all where left out.
            max_states: the budget of states.

        Raises:
            Undecided: the budget ran out before that was known.
        """
        outright = (word for word in self.words if rules is None or rules.accepts(word))
        found = (one.find_word(rules or _NO_RULES, max_states) for one in self.candidates)
        return next((word for word in chain(outright, found) if word is not None), None)


def read_plan(text: str, source: Source, *, strict: bool = False) -> Reading:
    """What a text describes, of the plans of a grammar or an automaton; its constraints and limits are not looked at.

    Args:
        text: the plan; see the module's page for the forms that are understood.
        source: the grammar, flowchart, behaviour or automaton whose terminals and labels are meant.
        strict: for machines: only what is printed is understood, to the letter.

    Raises:
        NotationError: a line is no step and cannot be left out, a name is no terminal or label (with the nearest one),
            JSON that is no plan; with its line.
        Undecided: there are too many ways to read it.
    """
    return _PlanReader(source, strict).read_text(text)


def read_plan_text(text: str, source: Source, *, strict: bool = False) -> Word:
    """The word of a plan that anybody wrote: one that follows all the rules, where it can be read as one.

    The arguments are those of :func:`read_plan`. What is no plan of the grammar or automaton gives a word that is none
    either, for :func:`~formal_llm.planning.checking.verify.verify` to explain why; where there is no such word, an
    error.

    Raises:
        NotationError: the text cannot be read, or describes no plan and no word has its steps; or it may be several
            words that differ in terminals with the same label. With its line.
        Undecided: there are too many ways to read it.
    """
    reader = _PlanReader(source, strict)
    reading = reader.read_text(text)
    word = reading.within(reader.pda) if reader.pda is not None else reading.within()
    if word is not None and reader.pda is not None:
        _check_shared(word, reading, reader.pda)
    if word is None:
        word = reading.within()
    if word is None:
        word = reading.guess
    if word is None:
        raise (reading.wrong or ReadingProblem("no plan is written like this")).to_error()
    return word


def find_names(text: str, source: Source) -> Word:
    """The terminals that a text may name: by name, by label, by the text of a transition; none where it names none.

    Raises:
        NotationError: a label that several terminals share, where no decisions determine which one is meant.
    """
    reader = _PlanReader(source, strict=False)
    moves = MovePhrases(reader.base).find_transitions(text) if reader.base is not None and reader.cfg is None else ()
    matching = [move for move in reader.base.transitions if move in moves] if reader.base is not None else []
    names = tuple(
        dict.fromkeys(move.read for move in matching if move.read is not None)
    ) or reader.naming.find_terminals(text)
    if len(names) > 1 and not any(move.decision for move in matching):
        raise NotationError(f"{text!r} may be {' or '.join(names)}; write the name that is meant")
    return names


class _PlanReader:
    def __init__(self, source: Source, strict: bool) -> None:
        automaton = as_automaton(source_of(source, "read_plan_text"))
        self.pda = automaton if isinstance(automaton, PDA) else None
        #: The automaton without what is put on top of it, and the grammar that it was made from.
        self.base = base_with_clock(self.pda) if self.pda else None
        self.cfg = self.base.cfg if self.base is not None else None
        vocabulary = Vocabulary(automaton)
        self._terminals = dict.fromkeys(vocabulary.terminals)
        self.naming = Naming(vocabulary, self._terminals)
        self._order: Order = vocabulary.order
        self._strict = strict

    @cached_property
    def _phrases(self) -> StepPhrases:
        if self.cfg is not None:
            return ProductionPhrases(self.cfg).collect_phrases()
        if self.base is not None:
            return MovePhrases(self.base).collect_phrases()
        return StepPhrases(lambda text: bool(self.naming.find_terminals(text)), tuple(self.naming.shown))

    def read_text(self, text: str) -> Reading:
        rows = [(place, row) for place, row in numbered_lines(text) if self._strict or not is_rule(row)]
        listed = self._split_listed_steps(rows)
        if rows and rows[0][1].lstrip()[0] in "{[" and not listed and not is_box(rows[0][1]):
            return self._read_json("\n".join(row for _, row in rows))
        if not rows or (not self._strict and text.strip() in _EMPTIES and "ε" not in self._terminals):
            return Reading(words=((),))
        introduced = not self._strict and len(rows) > 1 and self._is_introduction(rows[0][1])
        core = rows[1:] if introduced else rows
        skipped = (SkippedText(rows[0][0], rows[0][1].strip()),) if introduced else ()
        found = self._read_call(core, skipped) or self._read_word(core, skipped, slips=not listed)
        if found is not None and (self._strict or not self._phrases.whole(core[0][1].strip())):
            return found
        lines = self._read_listed_steps(listed) if listed else self._read_lines(text, rows)
        if found is None:
            return lines
        return replace(lines, words=found.words + lines.words, candidates=found.candidates + lines.candidates)

    def _read_lines(self, text: str, rows: Sequence[tuple[int, str]]) -> Reading:
        """Steps on lines; a single name may be a word as well."""
        alone = rows[0][1].strip() if len(rows) == 1 and not self._strict else ""
        if alone in self._terminals and alone not in self.naming.find_terminals(alone) and self._accepts_word((alone,)):
            return Reading(words=((alone,),))  # a word of one name, which is also the label of another
        lines = self._read_step_lines(*read_plan_lines(text, self._phrases, strict=self._strict))
        is_word = lines.wrong is not None and alone in self._terminals and self._accepts_word((alone,))
        return Reading(words=((alone,),)) if is_word else lines

    def _read_listed_steps(self, listed: Sequence[StepLine]) -> Reading:
        """Steps on one line; the names of terminals may also be in the order of the word."""
        for line in listed:
            if not self._phrases.whole(line.text):
                raise unknown_step(line.text, self._phrases.names, line.place, line.source)
        lines = self._read_step_lines(listed, ())
        texts = (line.text for line in listed)
        word = tuple(
            n for text in texts for n in ([text] if text in self._terminals else self.naming.find_terminals(text))
        )
        ways = (tuple(turn_word(word, self._order)), word) if lines.wrong is not None else ()
        return next((Reading(words=(way,)) for way in ways if self._accepts_word(way)), lines)

    def _accepts_word(self, word: Word) -> bool:
        return (rules := self.cfg or self.base) is not None and rules.accepts(word)

    def _is_introduction(self, row: str) -> bool:
        return row.rstrip(" *_").endswith(":") and find_step(row, self._phrases) is None

    # -- forms ------------------------------------------------------------------------------------------------

    def _split_listed_steps(self, rows: Sequence[tuple[int, str]]) -> list[StepLine]:
        """The steps of a text of one line, where it lists several, or one that looks like JSON; else none."""
        if self._strict or len(rows) != 1 or looks_like_json(rows[0][1]):
            return []
        place, row = rows[0][0], rows[0][1].strip()
        alone = [row] if row[0] in "{[" and self._phrases.whole(row) else []
        parts = split_steps(row, self._phrases) or alone
        return [StepLine(number, place, row, part) for number, part in enumerate(parts, 1)]

    def _read_json(self, text: str) -> Reading:
        plan = read_json(text)
        if not isinstance(plan, Plan):
            return Reading(words=(tuple(self._resolve_terminal(name, None, "") for name in plan),))
        if not plan.complete:
            return Reading(wrong=ReadingProblem("the plan is not finished"))
        if self.cfg is not None and not is_derivation(plan.tree, self.cfg):
            return Reading(wrong=ReadingProblem("the tree of the plan is no derivation of the grammar"))
        if self.cfg is not None or self.base is None:
            return Reading(words=(plan.word,))
        candidates = find_tree_candidates(plan.tree, self.base)
        wrong = (
            None
            if candidates is not None and has_word(candidates)
            else ReadingProblem("the automaton has no such steps, one after the other")
        )
        return Reading(candidates=(candidates,) if candidates is not None and wrong is None else (), wrong=wrong)

    def _read_call(self, rows: Sequence[tuple[int, str]], skipped: tuple[SkippedText, ...]) -> Reading | None:
        place, row = rows[0]
        call = parse_call(row if self._strict else strip_emphasis(row)) if len(rows) == 1 else None
        if call is None:
            return None
        result, tokens = call
        names = [token for token in tokens if token not in ("(", ")", ",")]
        if sum(name in self._terminals for name in names) <= _HALF * len(names):
            return None
        for name in names:
            self._resolve_terminal(name, place, row)
        line = StepLine(1, place, row, row)
        if self.cfg is None or (self._strict and row != format_call(result, tokens)):
            return Reading(wrong=ReadingProblem("plans of these rules are not printed as such a call", line))
        candidates = find_call_candidates(self.cfg, result, tokens)
        if candidates is not None:
            return Reading(candidates=(candidates,), skipped=skipped)
        guess = tuple(names)
        return Reading(
            guess=None if self.cfg.accepts(guess) else guess, skipped=skipped,
            wrong=ReadingProblem("no plan has these calls: the brackets say what each tool is applied to", line),
        )  # fmt: skip

    def _read_word(
        self, rows: Sequence[tuple[int, str]], skipped: tuple[SkippedText, ...], *, slips: bool
    ) -> Reading | None:
        """Names of terminals, with blanks between them."""
        if self._strict and len(rows) > 1:
            return None
        plain = [row for _, row in rows]
        texts = plain if self._strict else list(map(strip_emphasis, plain))
        for written in (plain, texts):
            if (word := read_names(written, self._terminals)) is not None:
                return Reading(words=(word,), skipped=skipped)
        names = texts[0].split()
        known = sum(name in self._terminals for name in names)
        if not slips or len(rows) > 1 or known <= _HALF * len(names) or self._phrases.whole(texts[0]):
            return None
        # In words that name steps, a name that is none is a slip.
        return Reading(words=(tuple(self._resolve_terminal(name, *rows[0]) for name in names),), skipped=skipped)

    def _resolve_terminal(self, text: str, place: int | None, row: str) -> str:
        if text in self._terminals:
            return text
        names = self.naming.find_terminals(text)
        if len(names) > 1:
            raise NotationError(f"{text!r} may be {' or '.join(names)}; write the name that is meant")
        if not names:
            raise NotationError(
                unknown("step", text, self.naming.shown), file="<plan>", line=place, source_line=row or None
            )
        return names[0]

    def _read_step_lines(self, lines: Sequence[StepLine], skipped: Sequence[SkippedText]) -> Reading:
        """Steps, one a line or several on one."""
        if not lines:
            raise NotationError(
                "there is no step in this text", file="<plan>", line=skipped[0].place if skipped else None
            )
        for line in lines:
            self.naming.check_line(line)
        candidates: tuple[CandidateWords, ...] = ()
        words: tuple[Word, ...] = ()
        guess = None
        decisions = [False] * len(lines)
        moved: AutomatonLines | None = None
        parsed: GrammarLines | None = None
        if self.cfg is not None:
            parsed = GrammarLines(self.cfg, lines, self._order, strict=self._strict)
            candidates = parsed.candidates
        elif self.base is not None:
            moved = AutomatonLines(self.base, lines, self._order, strict=self._strict)
            candidates = (moved.candidates,) if has_word(moved.candidates) else ()
            decisions = [moved.is_decision(at) for at in range(len(lines))]
        else:
            ordered = turn_word(lines, self._order)
            words = (tuple(self._resolve_terminal(line.text, line.place, line.source) for line in ordered),)
        wrong = find_wrong_number(lines, decisions)
        if wrong is not None:
            candidates, words = (), ()
        if not (candidates or words):
            guess = parsed.guess_word() if parsed is not None else moved.guess_word() if moved is not None else None
            wrong = wrong or (
                parsed.explain_failure() if parsed is not None else ReadingProblem("no plan is written like this")
            )
        # Numbers that are wrong are reported as they are; else an automaton is asked which steps were possible there.
        moved = None if wrong is not None and wrong.line is not None else moved
        return Reading(words, candidates, tuple(lines), tuple(skipped), guess, wrong, moved)


def _check_shared(word: Word, reading: Reading, rules: PDA) -> None:
    """Raise where another word that follows the rules has the same text, since labels are shared."""
    labels = {name: rules.label(name) for name in rules.terminals}
    if len(set(labels.values())) == len(labels) or any(move.decision for move in rules.transitions):
        return
    for candidates in reading.candidates:
        for other in islice(words(candidates.pda, len(word)), _OTHERS):
            if other != word and [*map(labels.get, other)] == [*map(labels.get, word)] and rules.accepts(other):
                one, two = next((a, b) for a, b in zip(word, other, strict=True) if a != b)
                raise NotationError(f"{labels[one]!r} may be {one} or {two}; write the name that is meant")
