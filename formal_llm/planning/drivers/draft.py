"""Draft and mend: the whole plan in one request, held against the rules, and questions where it leaves them.

1. The answerer is shown the rules and writes the whole plan.
2. The walk goes along the draft as far as it is legal, without a question.
3. Where the draft leaves the rules, the usual question is asked; it shows what the draft has there.
4. The answer stands for the step of the draft that was not legal. Where the rest of the draft, from the step after that
   one (or from that one, or the one after the next), is now the rest of a valid plan, the walk goes along it to the
   end. Else the next draft is asked for, if that is cheaper than to continue (:class:`Drafting`); else the walk
   continues with what is left of this one.

A draft is only ever a source of answers: each choice is one that the walk offers, so the plan is a word of the language
as that of any other strategy is, and no more questions are asked than there are choices in it. What a legal draft
states is a word; where that has several derivations, one with few moves is taken.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from formal_llm.automata import CFG, PDA, Limits, Production, Transition
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.llms.generation import Writing
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.drivers.following import DraftWay, find_way_along, follow_way
from formal_llm.planning.drivers.search import Ask, ask_once
from formal_llm.planning.reading.drafts import DraftSteps, is_silent, read_draft
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Drafted, EventCallback
from formal_llm.planning.walks.trail import WalkDraft
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import fill_template


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
            told = (text or words.label(name), words.describe_terminal(name), *numbers)
            about = [one for one in told if one not in ("", name)]
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
    begins, ends = ("ends", "begins") if pda.order == "backward" else ("begins", "ends")
    yield f"A plan {begins} at {pda.start_state}; each step leads from one place to another."
    leaving: dict[object, list[str]] = {}
    selecting = _find_selecting(pda)
    within = {move.target for move in selecting}
    for move in pda.transitions:
        if move in selecting:
            told = f"one or more of {', '.join(selection_members(move.push[0]) or ())} -> {selecting[move]}"
        else:
            told = f"{move.read or '(nothing)'} -> {move.target}"
        if move.state not in within:
            leaving.setdefault(move.state, []).append(told)
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
    said: dict[str, list[str]] = {}
    for name, most in limits.at_most.items():
        said.setdefault(_write_most(most), []).append(name)
    for name, least in limits.at_least.items():
        said.setdefault(f"at least {_write_times(least)}", []).append(name)
    yield from (f"- {how}: {', '.join(names)}" for how, names in said.items())


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

    Among the questions that are yielded are :class:`~formal_llm.llms.generation.Writing` requests.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    yield from _DraftMender(walk, ask, drafting or Drafting(), on_event).mend_drafts()


class _DraftMender:
    def __init__(self, walk: Walk, ask: Ask, drafting: Drafting, on_event: EventCallback | None) -> None:
        self._walk, self._ask, self._drafting, self._on_event = walk, ask, drafting, on_event
        self._told: dict[str, str] = {}
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
            if way is not None:
                self._mark_steps_done(follow_way(walk, self._draft_steps, way))
            if drafted is not None and self._on_event is not None and walk.draft is not None:
                taken, problem = walk.usage.drafted - drafted, self._draft_steps.problem
                self._on_event(Drafted(walk.draft.text, taken, problem, walk.name, id=walk.id))
            if walk.choice is not None:
                way = yield from self._ask_and_realign(way)

    @property
    def _draft_steps(self) -> DraftSteps:
        """The text of the draft."""
        text = self._walk.draft.text if self._walk.draft is not None else ""
        if text != self._read[0]:
            source, order = self._walk.table.lookahead.source, self._walk.wording.reads
            self._read = (text, read_draft(text, source, order=order))
        return self._read[1]

    @property
    def _steps_done(self) -> int:
        return self._walk.draft.at if self._walk.draft is not None else 0

    def _mark_steps_done(self, at: int) -> None:
        """Mark this many steps of the draft as done."""
        if self._walk.draft is not None:
            self._walk.draft = replace(self._walk.draft, at=at)

    # -- drafts -------------------------------------------------------------------------------------------------

    def _ask_draft(self) -> Generator[Question, Answer, DraftWay | None]:
        """Ask for a draft."""
        walk = self._walk
        if walk.budget.metered:
            walk.afford(question=False)
        answer = yield from self._ask(self._build_request())
        walk.count_draft(answer.usage)
        walk.draft = WalkDraft(answer.text)
        begun = self._count_followed_steps()
        return self._align_draft([0] if begun is None else [begun, 0])

    def _build_request(self) -> Writing:
        walk, wording, table = self._walk, self._walk.wording, self._walk.table
        task = walk.task.description
        if not self._told:
            self._told = {
                "names": describe_names(table),
                "rules": describe_rules(table),
                "limits": describe_limits(table),
            }
        nested = wording.backward and has_calls(table.vocabulary.grammar)
        prompt = wording.ask_draft(task, walk.partial.tree, self._told, nested=nested)
        before = replace(wording, examples=()).before((), task, table.rules)
        messages = (*before, Message("user", prompt))
        return Writing(messages, max_tokens=self._drafting.max_tokens, task=task, walk=walk.name)

    def _resume_draft(self) -> DraftWay | None:
        """Where a draft continues that the walk has already: where it was left, or where going back has led."""
        begun = self._count_followed_steps()
        return self._align_draft([self._steps_done if begun is None else begun])

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
        others = [at for at in dict.fromkeys(places[1:]) if at < end and at != likely]
        for at in (likely, *others):
            if (way := find_way_along(walk.table, walk.configuration, steps, at, whole=True)) is not None:
                self._mark_steps_done(at)
                return way
        ways = [find_way_along(walk.table, walk.configuration, steps, at) for at in (likely, *others)]
        found = [way for way in ways if way is not None]
        best = max(found, key=_count_way_steps, default=None)
        if best is not None and (_count_way_steps(best) < 2 or _count_way_steps(best) == _count_way_steps(found[0])):
            best = found[0]
        self._mark_steps_done(likely if best is None else best.at[0])
        return best

    # -- questions ----------------------------------------------------------------------------------------------

    def _ask_and_realign(self, way: DraftWay | None) -> Generator[Question, Answer, DraftWay | None]:
        """Ask where the draft does not continue; return how it continues after the answer."""
        walk, steps, at = self._walk, self._draft_steps, self._steps_done
        open_ = way is not None and way.whole  # the draft is legal, and does not determine which decision is meant
        walk.note("" if open_ or not steps else self._describe_wanted_step(steps, at))
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
