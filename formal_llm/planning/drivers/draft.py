"""Draft and mend: the whole plan in one request, held against the rules, and questions where it leaves them.

1. The answerer is shown the rules and writes the whole plan.
2. The walk goes along the draft as far as it is legal, without a question.
3. Where the draft leaves the rules, the choice is made that the rest of it clearly needs, if there is one. Else the
   usual question is asked; it shows what the draft has there.
4. The answer replaces the step of the draft that was not legal. Where the rest of the draft, from the step after that
   one (or from that one, or the one after the next), is now the rest of a valid plan, the walk goes along it to the
   end. Else the next draft is asked for, if that is cheaper than to continue (:class:`Drafting`); else the walk
   continues with what is left of this one.

A draft is only ever a source of answers: each choice is one that the walk offers, so the plan is a word of the language
as that of any other strategy is, and no more questions are asked than there are choices in it. What a legal draft
states is a word; where that has several derivations, one with few moves is taken.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from formal_llm.automata import CFG, PDA, Limits, Lookahead, Production
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.models.automaton import Configuration, Move, State
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.product import product
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.automata.models.transition import Transition
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.drivers.search import Ask, ask_once
from formal_llm.planning.reading.drafts import DraftStep, DraftSteps, is_silent, read_draft
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Drafted, EventCallback
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.trail import WalkDraft
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import fill_template

#: How many configurations are looked at, and how many more for each step of the draft.
_MOST, _EACH = 300, 20
#: How many steps of a draft may be skipped, among how many options the rest of it may decide, and by how many steps
#: what is taken must fit better.
_NEAR, _FEW, _SURE = 4, 20, 2
#: A configuration, and how many steps of the draft are done with.
_Node = tuple[Hashable, int]


class DraftWay(NamedTuple):
    """Moves that agree with a draft.

    Attributes:
        at: after each of them, and before the first, how many steps of the draft are done with.
        whole: whether they are the whole draft and end a valid plan.
    """

    moves: tuple[Move, ...]
    at: tuple[int, ...]
    whole: bool

    @property
    def reach(self) -> int:
        """How many steps of the draft are done with in the end."""
        return self.at[-1]


def find_way_along(
    table: ChoiceTable, configuration: Hashable, draft: DraftSteps, at: int = 0, *, whole: bool = False
) -> DraftWay | None:
    """The moves that agree with the steps of a draft from one of them on, furthest.

    Args:
        table: the choices of the automaton.
        configuration: where to begin.
        draft: the draft.
        at: how many of its steps are done with.
        whole: whether only moves are wanted that are all the rest of the draft and end a plan; else None.
    """
    with table.in_time():
        # To the letter first; then with decisions left out, and selections in another order.
        found = _DraftSearch(table, DraftSteps(draft.steps), at, whole=True, ordered=True).find_way(configuration)
        if found is None:
            found = _DraftSearch(table, draft, at, whole=True).find_way(configuration)
        if found is None and not whole:
            found = _DraftSearch(table, draft, at, whole=False).find_way(configuration)
    return found


class _DraftSearch:
    def __init__(self, table: ChoiceTable, draft: DraftSteps, at: int, *, whole: bool, ordered: bool = False) -> None:
        self._table, self._draft, self._at, self._whole, self._ordered = table, draft, at, whole, ordered
        self._end = len(draft.steps)
        self._most = _MOST + _EACH * (self._end - at)

    def find_way(self, configuration: Hashable) -> DraftWay | None:
        """The way from a configuration on."""
        way, sure = self._search_configurations(configuration, None)
        pda = self._table.lookahead.pda
        if way is not None or sure or pda is None or not self._ordered:
            return way
        return self._search_configurations(configuration, _RemainingWord(pda, self._draft.steps[self._at :]))[0]

    def _search_configurations(
        self, configuration: Hashable, rest: _RemainingWord | None
    ) -> tuple[DraftWay | None, bool]:
        """A way, and whether there is no better one for sure; with ``rest`` only words in the order of the draft."""
        ahead, number = self._table.lookahead, count()
        start = best = (configuration, self._at)
        back: dict[_Node, tuple[_Node, tuple[Move, ...]] | None] = {start: None}
        heap: list[tuple[float, int, int, _Node]] = [(0, 0, next(number), start)]
        looked = 0
        while heap and looked < self._most:
            _, since, _, node = heappop(heap)
            looked += 1
            if node[1] == self._end and self._table.automaton.accepting(node[0]):
                return _build_way(back, node, whole=True), True
            sets = len(ahead.selection(node[0]) or ()) > 1
            for moves, following in _expand_node(self._table, node, self._draft, ordered=self._ordered):
                if following in back or not self._is_open(following):
                    continue
                here, after = following
                left = -after if rest is None else rest.count_moves_left(ahead.uncounted(here), after - self._at)
                if left is None:
                    continue
                back[following] = (node, moves)
                # A set that nothing follows may have lost a member to a bad step: it is asked for.
                if after > best[1] and (not sets or after == self._end):
                    best = following
                heappush(heap, (left, 0 if after > node[1] else since + 1, next(number), following))
        return None if self._whole else _build_way(back, best, whole=False), not heap

    def _is_open(self, node: _Node) -> bool:
        """Whether a plan may be finished from there; a whole draft with the steps that are left of it."""
        here, done = node
        if self._table.look and not self._table.lookahead.completable(here).possible:
            return False
        short = not self._whole or self._draft.loose
        return short or self._table.lookahead.least_length(here, tries=0) <= self._end - done


class _RemainingWord:
    """Whether the rest of a word can be read from a configuration to the end, in how many moves at least.

    The automaton runs side by side with one that reads anything and then the rest of the word. This is exact also where
    there are more configurations than can be looked at (symbols that derive themselves); limits are about the word.
    """

    def __init__(self, pda: PDA, steps: Sequence[DraftStep]) -> None:
        moves = [Transition("before", name, None, "before") for name in pda.terminals]
        moves.append(Transition("before", None, None, 0))
        moves += [Transition(at, name, None, at + 1) for at, step in enumerate(steps) for name in step.names]
        chain = PDA(moves, start="before", accepting=[len(steps)], check=False)
        self._lookahead = Lookahead(product(pda.without_limits, chain))

    def count_moves_left(self, configuration: Configuration, done: int) -> float | None:
        """The moves that are left after this many steps of the rest; None where it cannot be read."""
        verdict = self._lookahead.completable(Configuration((configuration.state, done), configuration.stack))
        return None if not verdict.possible else verdict.steps or 0


def _expand_node(
    table: ChoiceTable, node: _Node, draft: DraftSteps, *, ordered: bool
) -> Iterator[tuple[tuple[Move, ...], _Node]]:
    """The moves from a configuration that agree with a draft, and what they lead to; of a selection, whole sets."""
    here, done = node
    chosen = table.lookahead.selection(here)
    if chosen is not None and len(chosen) > 1:
        for size, names in _list_prefix_sets(draft.steps[done:], chosen, ordered=ordered):
            subset = table.subset(here, names, INFINITE)
            if subset is not None:
                yield subset.moves, (table.after(here, subset), done + size)
        return
    step = draft.steps[done] if done < len(draft.steps) else None
    for move in table.automaton.moves(here):
        for after in _list_steps_done(move, step, done, loose=draft.loose):
            yield (move,), (table.automaton.step(here, move), after)


def _list_prefix_sets(
    steps: Sequence[DraftStep], members: Sequence[str], *, ordered: bool
) -> Iterator[tuple[int, frozenset[str]]]:
    """What the first steps choose of a selection, each set with how many steps these are; most first."""
    names: list[str] = []
    for step in steps:
        named = [name for name in members if name in step.names]
        before = names[-1:] if ordered else []
        if (
            len(named) != 1
            or named[0] in names
            or any(members.index(name) > members.index(named[0]) for name in before)
        ):
            break
        names.append(named[0])
    return ((size, frozenset(names[:size])) for size in range(len(names), 0, -1))


def _list_steps_done(move: Move, step: DraftStep | None, done: int, *, loose: bool) -> list[int]:
    """How many steps may be done with after a move."""
    after = [done + 1] if step is not None and step.is_made_by(move) and not _is_empty(move) else []
    return [*after, done] if is_silent(move, loose=loose) else after


def _is_empty(move: Move) -> bool:
    return move.read is None and not (isinstance(move, Transition) and move.text)


def _build_way(back: Mapping[_Node, tuple[_Node, tuple[Move, ...]] | None], node: _Node, *, whole: bool) -> DraftWay:
    moves: list[Move] = []
    at = [node[1]]
    while (before := back[node]) is not None:
        node, made = before
        moves += reversed(made)
        at += [node[1]] * len(made)
    return DraftWay(tuple(reversed(moves)), tuple(reversed(at)), whole)


def follow_way(walk: Walk, draft: DraftSteps, way: DraftWay) -> int:
    """Take a walk along a way as far as it goes; how many steps of the draft are done with then.

    It stops where the walk does not offer the choice of the way, where it went back from a dead end, and where the
    draft does not determine which of several decisions is meant.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    base, backtracks = len(walk.moves), walk.backtracks
    made = 0
    while (entry := walk.choice) is not None and walk.backtracks == backtracks:
        fresh = walk.moves[base + made :]
        together = _count_common_moves(fresh, way.moves[made:])
        made += together
        if together < len(fresh):
            break
        key = _find_choice_key(walk, entry, way, made)
        if key is None or _is_undecided(walk, entry, draft, way, made, key) or not walk.take(key):
            break
    if walk.choice is None:
        return way.reach
    return way.at[min(made, len(way.moves))]


def _count_common_moves(made: Sequence[Move], way: Sequence[Move]) -> int:
    """How many moves both begin with."""
    return next(
        (n for n, (one, other) in enumerate(zip(made, way, strict=False)) if one != other), min(len(made), len(way))
    )


def _find_choice_key(walk: Walk, entry: JournalEntry, way: DraftWay, made: int) -> ChoiceKey | None:
    """The choice that a way makes after this many moves; None where it ends, or makes none that is offered."""
    rest = way.moves[made:]
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
        if choice.moves == rest[: len(choice.moves)] if choice.moves else way.whole and not rest:
            return choice.index
    return None


def _is_undecided(walk: Walk, entry: JournalEntry, draft: DraftSteps, way: DraftWay, made: int, key: ChoiceKey) -> bool:
    """Whether a way decides what the draft leaves open: another choice agrees with the whole draft, too."""
    if not draft.loose or entry.fork.several:
        return False
    at = way.at[made]
    chosen = next(choice for choice in entry.fork.iter_choices() if choice.index == key)
    if way.at[made + len(chosen.moves)] > at or not any(isinstance(m, Transition) and m.decision for m in chosen.moves):
        return False
    out = entry.excluded | {key}
    open_ = (one for one in entry.fork.iter_choices() if one.index not in out and one.moves)
    others = (walk.table.after(entry.configuration, one) for one in open_)
    return any(find_way_along(walk.table, other, draft, at, whole=True) is not None for other in others)


def describe_names(table: ChoiceTable) -> str:
    """The names that a plan is made of, a line each with what they stand for; those that no plan may have left out."""
    words, limits = table.vocabulary, table.lookahead.limits
    pda = _find_base(table)
    texts: dict[str, set[str]] = {}
    for move in pda.transitions if pda is not None and pda.cfg is None else ():
        if move.read is not None:
            answer = f"{move.question} {move.text or words.label(move.read)}"
            texts.setdefault(move.read, set()).add(answer if move.decision else move.text)
    lines = []
    for name in words.terminals:
        if limits.at_most.get(name, 1) != 0:
            printed = sorted(texts.get(name, ()))
            text = printed[0] if len(printed) == 1 else ""
            symbol = words.symbols.get(name)
            numbers = [f"{quantity}={n}" for quantity, n in symbol.numbers.items()] if symbol is not None else []
            description = (text or words.label(name), words.describe_terminal(name), *numbers)
            about = [one for one in description if one not in ("", name)]
            lines.append(f"- {name}: {', '.join(about)}" if about else f"- {name}")
    return "\n".join(lines)


def describe_rules(table: ChoiceTable) -> str:
    """What may follow what."""
    pda = _find_base(table)
    if pda is None or (pda.cfg is None and not _is_chart(pda)):
        return table.rules()
    lines = list(_describe_grammar(pda.cfg) if pda.cfg is not None else _describe_chart(pda))
    factors = table.lookahead.pda.factors[1:] if table.lookahead.pda is not None else ()
    return "\n".join([*lines, *(f"- and: {one.name}" for one in factors if one.name)])


def describe_limits(table: ChoiceTable) -> str:
    """How often names may be used, and what their numbers may come to."""
    limits = table.lookahead.limits
    sums = [line for one in limits.sums for line in one.lines()]
    times = [line for line in limits.lines() if not line.startswith(("%limit", "%require"))]
    return "\n".join([*_describe_counts(limits), *(f"- {line.removeprefix('%limit ')}" for line in (*sums, *times))])


def _find_base(table: ChoiceTable) -> PDA | None:
    pda = table.lookahead.pda
    return None if pda is None else base_with_clock(pda)


def _describe_grammar(cfg: CFG) -> Iterator[str]:
    yield f"A plan is one {cfg.start}. Each line says what a symbol is made of, in this order; | parts the choices."
    by_head: dict[str, list[Production]] = {}
    if len(cfg.authored) < len(cfg.productions):
        yield (
            "X* stands for X any number of times, X+ for once or more, X? for once or not at all, X{1,3} for one to "
            "three times; (a | b) for one of the choices in it."
        )
    for production in cfg.authored:
        by_head.setdefault(production.head, []).append(production)
    for head, productions in by_head.items():
        label = cfg.label(head)
        shown = f' "{label}"' if label != head.replace("_", " ") else ""
        yield f"- {head}{shown}: {' | '.join(' '.join(one.body) or '(nothing)' for one in productions)}"


def _describe_chart(pda: PDA) -> Iterator[str]:
    begins, ends = ("ends", "begins") if pda.order == "prefix" else ("begins", "ends")
    yield f"A plan {begins} at {pda.start_state}; each step leads from one place to another."
    leaving: dict[object, list[str]] = {}
    selecting = _find_selecting(pda)
    within = {move.target for move in selecting}
    for move in pda.transitions:
        if move in selecting:
            members = f"one or more of {', '.join(selection_members(move.push[0]) or ())} -> {selecting[move]}"
        else:
            members = f"{move.read or '(nothing)'} -> {move.target}"
        if move.state not in within:
            leaving.setdefault(move.state, []).append(members)
    yield from (f"- from {state}: {', '.join(steps)}" for state, steps in leaving.items())
    yield f"It {ends} at {', '.join(sorted(map(str, pda.accepting_states)))}."


def _find_selecting(pda: PDA) -> dict[Transition, State]:
    """The transitions that begin a selection, each with where it leads in the end."""
    after = {move.pop: move.target for move in pda.transitions if move.pop is not None}
    return {
        move: after[move.push[1]]
        for move in pda.transitions
        if move.pop is None
        and len(move.push) == 2
        and selection_members(move.push[0]) is not None
        and move.push[1] in after
    }


def _is_chart(pda: PDA) -> bool:
    """Whether the stack is used for selections alone."""
    selecting = _find_selecting(pda)
    within = {move.target for move in selecting}
    return all(
        move in selecting or move.state in within or (move.pop is None and not move.push) for move in pda.transitions
    )


def _describe_counts(limits: Limits) -> Iterator[str]:
    if limits.default is not None:
        yield f"- each name {_write_most(limits.default)}, where nothing else is said"
    grouped: dict[str, list[str]] = {}
    for name, most in limits.at_most.items():
        grouped.setdefault(_write_most(most), []).append(name)
    for name, least in limits.at_least.items():
        grouped.setdefault(f"at least {_write_times(least)}", []).append(name)
    yield from (f"- {how}: {', '.join(names)}" for how, names in grouped.items())


def _write_most(count: int | None) -> str:
    return "as often as you like" if count is None else f"at most {_write_times(count)}" if count else "never"


def _write_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


#: About how many characters a token has, where prompts are compared: as a rule of thumb, the same on every machine.
_TOKEN = 4
#: How many characters of a step of a draft a question shows.
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Drafting:
    """When to draft anew, and how.

    Another draft is asked for when ``saved * (request + q) > request + d``. Here ``q`` and ``d`` are the tokens of the
    last question and of a draft, a token being four characters of the prompt; ``saved`` is how many questions the
    draft is expected to save: as many as are expected to be left, but no more than the drafts so far have saved each
    (the first one more, so that a draft that saved nothing is not held against all others).

    Attributes:
        most: the most drafts for one plan.
        request: what a request counts beside its tokens, in tokens: its price, or the time until it is answered.
        max_tokens: the most tokens of a draft.

    Raises:
        ValueError: fewer than one draft, a request that counts less than nothing, or no token to write.
    """

    most: int = 3
    request: float = 500.0
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        if self.most < 1 or not self.request >= 0 or self.max_tokens < 1:
            raise ValueError("a drafting has most >= 1, request >= 0 and max_tokens >= 1")


def draft_and_mend(
    walk: Walk, ask: Ask = ask_once, drafting: Drafting | None = None, *, on_event: EventCallback | None = None
) -> Steps:
    """Take a walk to its end along drafts, and along answers where they leave the rules.

    Among the questions that are yielded are :class:`~formal_llm.llms.TextRequest` requests.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    yield from _DraftMender(walk, ask, drafting or Drafting(), on_event).mend_drafts()


class _DraftMender:
    def __init__(self, walk: Walk, ask: Ask, drafting: Drafting, on_event: EventCallback | None) -> None:
        self._walk, self._ask, self._drafting, self._on_event = walk, ask, drafting, on_event
        self._prompt_parts: dict[str, str] = {}
        self._read: tuple[str, DraftSteps] = ("", DraftSteps())

    def mend_drafts(self) -> Steps:
        walk = self._walk
        # A question with a note states that the draft does not continue there: a walk that was resumed asks it.
        begun = walk.draft is not None and walk.choice is not None and not walk.choice.note
        way = self._resume_draft() if begun else None
        while walk.choice is not None:
            drafted = walk.usage.drafted if walk.draft is None else None
            if walk.draft is None:
                way = yield from self._ask_draft()
            before, forced = len(walk.moves), 0
            if way is not None:
                self._mark_steps_done(follow_way(walk, self._draft_steps, way))
                forced = self._count_steps(before) - (self._steps_done - way.at[0])
            if drafted is not None and self._on_event is not None and walk.draft is not None:
                taken, problem = walk.usage.drafted - drafted, self._draft_steps.problem
                self._on_event(Drafted(walk.draft.text, taken, problem, walk.name, id=walk.id))
            if walk.choice is not None and forced > 0:  # what left no choice stands for steps of the draft
                way = self._align_draft([self._steps_done + forced, self._steps_done])
            elif walk.choice is not None:
                way = self._mend_step(way) or (yield from self._ask_and_realign(way))

    @property
    def _draft_steps(self) -> DraftSteps:
        text = self._walk.draft.text if self._walk.draft is not None else ""
        if text != self._read[0]:
            source = self._walk.table.lookahead.source
            self._read = (text, read_draft(text, source))
        return self._read[1]

    @property
    def _steps_done(self) -> int:
        return self._walk.draft.at if self._walk.draft is not None else 0

    def _mark_steps_done(self, at: int) -> None:
        if self._walk.draft is not None:
            self._walk.draft = replace(self._walk.draft, at=at)

    # -- drafts -------------------------------------------------------------------------------------------------

    def _ask_draft(self) -> Generator[Question, Answer, DraftWay | None]:
        walk = self._walk
        if walk.budget.metered:
            walk.afford(question=False)
        answer = yield from self._ask(self._build_request())
        walk.count_draft(answer.usage)
        walk.draft = WalkDraft(answer.text)
        begun = self._count_followed_steps()
        if begun is None:  # what was made behind the last step that the draft has, too, stands for as many of it
            made = [move for move in walk.moves if not is_silent(move, loose=self._draft_steps.loose)]
            known = self._draft_steps.steps[: len(made)]
            pairs = ((n, at) for n in range(len(made), 0, -1) for at in range(len(known), 0, -1))
            same = (at - n for n, at in pairs if known[at - 1].is_made_by(made[n - 1]))
            begun = len(made) + next(same, 0)
        return self._align_draft([begun, 0])

    def _build_request(self) -> TextRequest:
        walk, wording, table = self._walk, self._walk.wording, self._walk.table
        task = walk.task.description
        if not self._prompt_parts:
            self._prompt_parts = {
                "names": describe_names(table),
                "rules": describe_rules(table),
                "limits": describe_limits(table),
            }
        order = table.vocabulary.order
        nested = order == "prefix" and has_calls(table.vocabulary.grammar)
        prompt = wording.ask_draft(task, walk.partial.tree, self._prompt_parts, order, nested=nested)
        before = replace(wording, examples=()).before((), task, table.rules)
        messages = (*before, Message("user", prompt))
        return TextRequest(messages, max_tokens=self._drafting.max_tokens, task=task, walk=walk.name)

    def _resume_draft(self) -> DraftWay | None:
        """Where a draft continues that the walk has already: where it was left, or where going back has led."""
        begun = self._count_followed_steps()
        return self._align_draft([self._steps_done if begun is None else begun])

    def _count_steps(self, since: int) -> int:
        """How many steps the moves since one of them make."""
        return sum(not is_silent(move, loose=self._draft_steps.loose) for move in self._walk.moves[since:])

    def _count_followed_steps(self) -> int | None:
        """How many steps of the draft the plan so far is; None where it is another one."""
        steps, done = self._draft_steps, 0
        for move in self._walk.moves:
            if done < len(steps.steps) and steps.steps[done].is_made_by(move):
                done += 1
            elif not is_silent(move, loose=steps.loose):
                return None
        return done

    def _align_draft(self, places: Sequence[int]) -> DraftWay | None:
        """The way along the draft from one of these steps on: the whole rest, or else the longest.

        The first place is the likeliest. Another one counts where the whole rest, or two steps of it, continue from
        there.
        """
        walk, steps = self._walk, self._draft_steps
        if not steps:
            return None
        end = len(steps.steps)
        likely = min(places[0], end)
        skipped = dict.fromkeys([likely, *(at for at in places[1:] if at < end)], 0)
        for at in skipped:
            if (way := find_way_along(walk.table, walk.configuration, steps, at, whole=True)) is not None:
                self._mark_steps_done(at)
                return way
        # What leaves no choice may stand for some steps of the draft: then later ones must continue all the longer.
        for at in range(likely + 1, min(likely + _NEAR, end)):
            skipped.setdefault(at, _SURE * (at - likely))
        ways = [find_way_along(walk.table, walk.configuration, steps, at) for at in skipped]
        found = [way for way in ways if way is not None]
        best = max(found, key=lambda way: _count_way_steps(way) - skipped[way.at[0]], default=None)
        if best is not None and _count_way_steps(best) < 2:
            best = found[0]
        self._mark_steps_done(likely if best is None else best.at[0])
        return best

    def _mend_step(self, way: DraftWay | None) -> DraftWay | None:
        """Make the choice that the rest of the draft needs, if it is only one; return how the draft continues then."""
        walk, steps, at, entry = self._walk, self._draft_steps, self._steps_done, self._walk.choice
        assert entry is not None
        choices = [one for one in entry.fork.iter_choices() if one.index not in entry.excluded and one.moves]
        whole = at >= len(steps.steps) or (way is not None and way.whole)
        if entry.fork.several or whole or not 1 < len(choices) <= _FEW:
            return None

        def reach_from(configuration: Hashable, place: int) -> int:
            return 0 if (along := find_way_along(walk.table, configuration, steps, place)) is None else along.reach

        after = [(walk.table.after(entry.configuration, choice), choice) for choice in choices]
        # The draft has another step here, or left it out.
        found = [(reach_from(one, place), place, choice) for one, choice in after for place in (at + 1, at)]
        reach, place, chosen = max(found, key=lambda one: one[0])
        others = (one for one, _, choice in found if choice is not chosen)
        before = len(walk.moves) + len(chosen.moves)
        if reach - max(reach_from(entry.configuration, at + 1), *others) < _SURE or not walk.take(chosen.index):
            return None
        return self._align_draft([place + self._count_steps(before), place])

    # -- questions ----------------------------------------------------------------------------------------------

    def _ask_and_realign(self, way: DraftWay | None) -> Generator[Question, Answer, DraftWay | None]:
        """Ask where the draft does not continue; return how it continues after the answer."""
        walk, steps, at = self._walk, self._draft_steps, self._steps_done
        open_ = way is not None and way.whole  # the draft is legal, and does not determine which decision is meant
        later = frozenset(name for step in steps.steps[at:] for name in step.names)  # the draft has a place for these
        walk.note("" if open_ or not steps else self._describe_wanted_step(steps, at), later)
        question = walk.question
        assert question is not None
        moves, backtracks = len(walk.moves), walk.backtracks
        answer = yield from self._ask(question)
        walk.answer(answer)
        if walk.choice is None:
            return None
        if walk.backtracks != backtracks:
            begun = self._count_followed_steps()
            places = [at if begun is None else begun]
        else:
            last = at + sum(not is_silent(move, loose=False) for move in walk.moves[moves:])
            places = [at] if open_ else []
            places += [last, at, *range(at + 1, last), last + 1]
        way = self._align_draft(places)
        if (way is None or not way.whole) and self._is_redraft_cheaper(question, way):
            walk.draft = None
        return way

    def _describe_wanted_step(self, steps: DraftSteps, at: int) -> str:
        """The note about the draft in the question."""
        wording = self._walk.wording
        text = steps.steps[at].text if at < len(steps.steps) else wording.stop_option
        return fill_template(wording.draft_wanted, {"step": " ".join(text.split())[:_SHOWN]})

    def _is_redraft_cheaper(self, question: Question, way: DraftWay | None) -> bool:
        """Whether another draft is cheaper than to continue (see :class:`Drafting`)."""
        walk, rule = self._walk, self._drafting
        used, made = walk.usage, len(walk.word)
        if used.drafts >= rule.most or walk.draft is None:
            return False
        steps = max(
            len(self._draft_steps.steps) - self._steps_done, walk.table.lookahead.least_length(walk.configuration)
        )
        steps -= 0 if way is None else _count_way_steps(way)
        choices = used.drafted + used.questions - used.wasted
        saved = min(steps * choices / max(1, made), (used.drafted + 1) / used.drafts)
        asked = sum(len(message.content) for message in question.messages) / _TOKEN
        drafted = sum(len(message.content) for message in self._build_request().messages) + len(walk.draft.text)
        return saved * (rule.request + asked) > rule.request + drafted / _TOKEN


def _count_way_steps(way: DraftWay) -> int:
    """How many steps of the draft a way takes."""
    return way.reach - way.at[0]


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
