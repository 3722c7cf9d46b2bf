"""``search="draft"``: the model writes a whole plan in one request, and is asked only where that breaks the rules.

The draft is a list of steps by their names, in the order of carrying out, with commas between them, one a line, or as
JSON. (Held to a schema of lists of names, a model of 1.5 billion weights listed nearly all there are.) The walk follows
the valid plan that is nearest to the draft
(:func:`~formal_llm.automata.languages.nearest_words.find_continuation`) as far as the draft determines it. Where the
nearest plan has a step that the draft has not, or several options are equally near, the question is asked with the
draft in sight, and the nearest plan is found anew. So a draft that keeps the rules is one request, and whatever was
drafted, the plan is valid.

What calls are applied to, and the answers of a chart, may be left out of a draft; where it does not determine them,
they are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import suppress
from typing import NamedTuple

from formal_llm.authored.files import lines_of
from formal_llm.automata import CFG, PDA
from formal_llm.automata.languages.nearest_words import Continuation, compare_beginnings, find_continuation
from formal_llm.automata.models.automaton import Move, Word
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.errors import NotationError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.drivers.search import Ask, ask_once, greedy
from formal_llm.planning.plans.printed import StepTexts
from formal_llm.planning.reading import split_mark
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.describing import describe_limits, describe_names, describe_rules
from formal_llm.planning.walks.events import Drafted, EventCallback
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.trail import WalkDraft
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import fill_template

#: The most tokens of a draft: some, and more for each step of a shortest plan, of which so many count.
_TOKENS, _STEP_TOKENS, _COUNTED = 224, 32, 100
#: How much of a draft is read, and how many characters of it a question shows.
_MOST, _SHOWN = 50_000, 200
#: With fewer options than this it is determined which of them leads nearer to the draft than all others.
_FEW = 20
#: How many pairs of a place in the draft and a configuration are examined to find the nearest plan.
_PAIRS = 2_000
#: How many names of a draft may be left out where the nearest plan was not found.
_NEAR = 4
_FENCE = re.compile(r"\s*```\w*\n(.*?)```\s*", re.DOTALL)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s(),;]+')


class DraftNames(NamedTuple):
    """What a draft says.

    Attributes:
        names: its steps in the order of the word; those that the rules do not know are kept.
        problem: why nothing in it can be used; empty where something can.
    """

    names: Word
    problem: str = ""


class DraftRules:
    """What drafts of plans by some rules are made of.

    Attributes:
        names: the names of a draft.
        free: the names that a draft may leave out: what calls are applied to, the answers of a chart.
        prefix, calls: whether words run from the last step to the first; whether plans are nested calls.
    """

    def __init__(self, table: ChoiceTable) -> None:
        vocabulary = table.vocabulary
        limits, pda = table.lookahead.limits, table.lookahead.pda
        arguments = find_arguments(vocabulary.grammar) if vocabulary.order == "prefix" else frozenset()
        base = None if pda is None else base_with_clock(pda)
        decisions = {move.read for move in base.transitions if move.decision} if base is not None else set()
        self.prefix = vocabulary.order == "prefix"
        self.calls = bool(arguments)
        self.free = arguments | {name for name in decisions if name is not None}
        self._terminals = dict.fromkeys(vocabulary.terminals)
        self.names = tuple(
            name for name in self._terminals if limits.at_most.get(name, 1) != 0 and name not in arguments
        )
        self._selections = _find_selections(pda)
        self._texts = StepTexts(base, vocabulary)

    def read_draft(self, text: str) -> DraftNames:
        """Read a draft: ``{"plan": [names]}``, a JSON list of names, or names on lines or with blanks between them."""
        text = text[:_MOST]
        fenced = _FENCE.fullmatch(text)
        found = self._read_names(fenced[1] if fenced else text)
        if found and not any(name in self._terminals for name in found):
            return DraftNames((), "none of its names is that of a step")
        names = found[::-1] if self.prefix else found
        return DraftNames(tuple(names), "" if found or text.strip() else "nothing was written")

    def _read_names(self, text: str) -> list[str]:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return [name for row in lines_of(text) for name in self._split_row(split_mark(row)[0].strip())]
        names = data.get("plan", data.get("word")) if isinstance(data, dict) else data
        return [self._resolve_name(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _split_row(self, row: str) -> list[str]:
        """The names on a line: one, or several with commas or blanks between them."""
        names: list[str] = []
        pieces = [row] if self._resolve_name(row) in self._terminals else re.split("[,;]", row)
        for piece in filter(None, map(str.strip, pieces)):
            known = self._resolve_name(piece)
            names += [known] if known in self._terminals else [one.strip('"') for one in _NAME.findall(piece)]
        return names

    def _resolve_name(self, text: str) -> str:
        """The terminal that a name, a label or a text of the rules stands for; the text itself where there is none."""
        if text in self._terminals:
            return text
        with suppress(NotationError):  # the label of one and the name of another
            moves = (move.read for move in self._texts.find_moves(text) if move.read is not None)
            return next(iter(sorted(moves)), None) or next(iter(self._texts.find_terminals(text)), text)
        return text

    def sort_selections(self, names: Word) -> Word:
        """The names with what is chosen together in the order in which the rules read it."""
        made = list(names)
        for members in self._selections:
            at = 0
            while at < len(made):
                end = at
                while end < len(made) and made[end] in members:
                    end += 1
                made[at:end] = sorted(made[at:end], key=members.index)
                at = end + 1
        return tuple(made)


def find_arguments(cfg: CFG | None) -> frozenset[str]:
    """Return the terminals of nested calls that are applied to nothing: inputs; none where plans are no such calls."""
    if cfg is None or not has_calls(cfg):
        return frozenset()
    tools = [one.body[0] for one in cfg.productions if len(one.body) > 1]
    for name in tools:  # which grows
        tools += [one.body[0] for one in cfg.by_head.get(name, ()) if len(one.body) == 1 and one.body[0] not in tools]
    return frozenset(cfg.terminals) - frozenset(tools) if tools else frozenset()


def _find_selections(pda: PDA | None) -> list[tuple[str, ...]]:
    names = dict.fromkeys(name for move in pda.transitions for name in move.push) if pda is not None else ()
    return [members for name in names if len(members := selection_members(name) or ()) > 1]


def draft_and_mend(walk: Walk, ask: Ask = ask_once, *, on_event: EventCallback | None = None) -> Steps:
    """Take a walk to its end along a draft, and along answers where that breaks the rules.

    The first request is a :class:`~formal_llm.llms.TextRequest`.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    if walk.done:
        return
    rules, fresh = DraftRules(walk.table), walk.draft is None
    if fresh:
        if walk.budget.metered:
            walk.afford(question=False)
        answer = yield from ask(build_request(walk, rules))
        walk.count_draft(answer.usage)
        walk.draft = WalkDraft(answer.text)
    assert walk.draft is not None
    draft, before = rules.read_draft(walk.draft.text), walk.usage.drafted
    names = _sort_draft(walk, rules, draft.names)
    near = not draft.problem and _follow(walk, rules, names, near=True)
    if fresh and on_event is not None:
        taken = walk.usage.drafted - before
        on_event(Drafted(walk.draft.text, taken, draft.problem, walk.name, id=walk.id))
    while not draft.problem and not walk.done:
        yield from _ask_with_draft(walk, ask, rules, names)
        near = _follow(walk, rules, names, near=near)
    yield from greedy(walk, ask)


def build_request(walk: Walk, rules: DraftRules) -> TextRequest:
    """Build the request for a draft."""
    table, wording, task = walk.table, walk.wording, walk.task.description
    parts = {
        "names": describe_names(table, rules.names),
        "limits": _write_paragraph("How often, and up to which sums:", describe_limits(table)),
        "rules": _write_paragraph("The rules of a plan:", describe_rules(table, calls=rules.calls)),
    }
    messages = wording.ask_draft(task, parts, table.rules)
    tokens = _TOKENS + _STEP_TOKENS * int(min(table.lookahead.least_length(walk.configuration), _COUNTED))
    return TextRequest(messages, max_tokens=tokens, task=task, walk=walk.name)


def _write_paragraph(heading: str, lines: str) -> str:
    return f"{heading}\n{lines}\n\n" if lines else ""


def _find_way(walk: Walk, rules: DraftRules, draft: Word) -> Continuation | None:
    with walk.table.in_time():
        return find_continuation(
            walk.table.lookahead, walk.configuration, draft, walk.word, rules.free, max_states=_PAIRS
        )


def _sort_draft(walk: Walk, rules: DraftRules, draft: Word) -> Word:
    """The draft with what is chosen together in the order of the rules, where that is nearer to a plan."""
    turned = rules.sort_selections(draft)
    if turned == draft:
        return draft
    ways = [(way.distance, one) for one in (draft, turned) if (way := _find_way(walk, rules, one)) is not None]
    return min(ways, key=lambda way: way[0])[1] if ways else draft


def _follow(walk: Walk, rules: DraftRules, draft: Word, *, near: bool) -> bool:
    """Follow a draft; whether the nearest plan was found, which is looked for where it was found before (``near``)."""
    if near and _follow_draft(walk, rules, draft):
        return True
    _follow_names(walk, rules, draft)
    return False


def _follow_draft(walk: Walk, rules: DraftRules, draft: Word) -> bool:
    """Take the choices that a draft determines; whether the nearest plan was found."""
    way = _find_way(walk, rules, draft)
    if way is None:
        return False
    base, backtracks, made = len(walk.moves), walk.backtracks, 0
    while (entry := walk.choice) is not None and walk.backtracks == backtracks:
        fresh = walk.moves[base + made :]
        if tuple(fresh) != way.moves[made : made + len(fresh)]:
            break
        made += len(fresh)
        key = _find_choice_key(walk, entry, way.moves[made:])
        if key is None or not _is_determined(walk, entry, rules, draft, way, made, key) or not walk.take(key):
            break
    return True


def follow_word(walk: Walk, word: Word) -> bool:
    """Take the choices that lead to a word, which begins with what the walk has read; whether they were found."""
    with walk.table.in_time():
        way = find_continuation(walk.table.lookahead, walk.configuration, word, walk.word)
    if way is None or way.distance:
        return False
    base = len(walk.moves)
    while (entry := walk.choice) is not None:
        key = _find_choice_key(walk, entry, way.moves[len(walk.moves) - base :])
        if key is None or not walk.take(key):
            return False
    return walk.word == word


def _follow_names(walk: Walk, rules: DraftRules, draft: Word) -> None:
    """Take the options that read the next names of a draft, or names soon after them."""
    while (entry := walk.choice) is not None:
        row = compare_beginnings(tuple(name for name in walk.word if name not in rules.free), draft)
        # Of the places that what was read may have reached, the last one is the likeliest: an answer replaces a name.
        places = [at for at in range(len(draft), -1, -1) if row[at] == min(row)]
        ahead = [at + skipped for skipped in range(_NEAR) for at in places if at + skipped < len(draft)]
        keys = (_find_key_of_names(walk, entry, draft[at:]) for at in ahead)
        key = next((one for one in keys if one is not None), None)
        if key is None or not walk.take(key):
            break


def _find_key_of_names(walk: Walk, entry: JournalEntry, names: Word) -> ChoiceKey | None:
    """The choice that reads the first of these names, of a selection as many as can be chosen; None for none."""
    if entry.fork.several:
        members = entry.fork.scope.all_members
        ends = next((at for at, name in enumerate(names) if name not in members), len(names))
        for size in range(ends, 0, -1):
            if walk.table.subset(entry.configuration, frozenset(names[:size]), walk.left) is not None:
                return frozenset(names[:size])
        return None
    reading = (one for one in entry.fork.iter_choices() if one.reads[:1] == names[:1])
    return next((one.index for one in reading if one.index not in entry.excluded), None)


def _is_determined(
    walk: Walk, entry: JournalEntry, rules: DraftRules, draft: Word, way: Continuation, made: int, key: ChoiceKey
) -> bool:
    """Whether a draft determines a choice: it has what the choice reads, or every other option is further from it."""
    chosen = entry.find_choice(key, walk.table, walk.left)
    assert chosen is not None
    if entry.fork.several:
        return way.distance == 0
    ahead = [(move.read, kept) for move, kept in zip(way.moves[made:], way.kept[made:], strict=True)]
    first = next((kept for name, kept in ahead[: len(chosen.moves)] if name is not None), False)
    if first or (way.distance == 0 and all(kept or name is None for name, kept in ahead)):
        return True
    others = [one for one in entry.fork.iter_choices() if one.index != key and one.index not in entry.excluded]
    if len(others) >= _FEW:
        return False
    for other in others:
        begun = (*walk.word, *(move.read for move in other.moves if move.read is not None))
        with walk.table.in_time():
            here = walk.table.after(entry.configuration, other)
            near = find_continuation(walk.table.lookahead, here, draft, begun, rules.free)
        if near is None or near.distance <= way.distance:
            return False
    return True


def _find_choice_key(walk: Walk, entry: JournalEntry, rest: tuple[Move, ...]) -> ChoiceKey | None:
    """The choice with which these moves begin; None where it is not offered."""
    if entry.fork.several:
        members = entry.fork.scope.all_members
        reads: list[str] = []
        for name in (move.read for move in rest if move.read is not None):
            if name not in members or name in reads:
                break
            reads.append(name)
        for size in range(len(reads), 0, -1):
            names = frozenset(reads[:size])
            choice = walk.table.subset(entry.configuration, names, walk.left)
            if choice is not None and choice.moves == rest[: len(choice.moves)] and names >= entry.fork.scope.taken:
                return names
        return None
    for choice in entry.fork.iter_choices():
        if choice.index in entry.excluded:
            continue
        if choice.moves == rest[: len(choice.moves)] if choice.moves else not rest:
            return choice.index
    return None


def _ask_with_draft(walk: Walk, ask: Ask, rules: DraftRules, draft: Word) -> Generator[Question, Answer, None]:
    """Ask the question where a draft does not go on, with the draft in sight."""
    shown = draft[::-1] if rules.prefix else draft
    label = walk.table.vocabulary.label
    text = ", ".join(label(name) if name in rules.names else name for name in shown)[:_SHOWN]
    walk.note(fill_template(walk.wording.draft_wanted, {"plan": text}) if shown else "", frozenset(draft))
    question = walk.question
    assert question is not None
    walk.answer((yield from ask(question)))


def has_calls(grammar: CFG | None) -> bool:
    """Whether the plans of a grammar are nested calls: what is made of several things begins with a tool."""
    if grammar is None:
        return False
    tools = grammar.terminals.keys() | grammar.classes
    return all(
        len(one.body) < 2 or one.body[0] in tools or parse_repetition(one.head) is not None
        for one in grammar.productions
    ) and not any(
        parse_repetition(name) for one in grammar.productions for name in one.body[:1] if not parse_repetition(one.head)
    )
