"""``formal-llm try``: the author of rules answers the questions, takes answers back, and asks why."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from formal_llm.automata import Lookahead
from formal_llm.automata.languages.word_lists import count_plans
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME
from formal_llm.cli import options
from formal_llm.cli.console import command, counted, err, print_text, said_of
from formal_llm.cli.sources import load, read_limits
from formal_llm.errors import FormalLLMError, InvalidAnswer, NoValidPlan, Undecided
from formal_llm.llms import Answer
from formal_llm.llms.reading import named_options
from formal_llm.planning import Planner, Walk
from formal_llm.planning.checking.reasons import Reasons
from formal_llm.planning.plans.vocabulary import EMPTY, write_word
from formal_llm.planning.walks.events import Backtracked, Event, Forced


class LookaheadMode(StrEnum):
    """Whether only options are offered from which a plan can be finished."""

    on = "on"
    off = "off"


LookaheadOption = Annotated[
    LookaheadMode, typer.Option(help="on: no dead ends are offered; off: dead ends are left by backtracking.")
]


HELP = """Try rules: answer the questions yourself, as the LLM would.

An answer is a number, or several where several may be chosen. Besides: back, again, why, why NAME, plan, left, script,
help, quit. The plan goes to standard output, everything else to standard error.

Examples:

  formal-llm try my.cfg

  formal-llm try openagi 117 --limit colorization=0
"""

_HELP = """\
NUMBER, or NUMBER, NUMBER ...  answer the question; the text of an option does as well
back                           take the last answer back
again                          give an answer again that was taken back
why                            the options that the rules leave out here, each with the reason
why NAME                       why a step, by its name or label, or an option is not offered
plan                           what there is of the plan
left                           how many plans are still possible, and one at random
script                         the answers so far, to be replayed
help                           this text
quit                           end; so does the end of the input (Ctrl-D)"""


@command
def try_(
    source: options.SourceArgument,
    task: options.TaskArgument = "",
    limit: options.LimitOption = None,
    require: options.RequireOption = None,
    input_: options.InputOption = None,
    goal: options.GoalOption = None,
    set_: options.SetOption = None,
    lookahead: LookaheadOption = LookaheadMode.on,
    max_states: options.MaxStatesOption = 20_000,
    search_time: options.SearchTimeOption = SEARCH_TIME,
) -> None:
    """Try rules."""
    loaded = load(source, set_)
    planner = Planner(
        loaded.source,
        "test:first",  # never asked: the person at the terminal answers
        constraints=loaded.constraints,
        limits=read_limits(limit, require, loaded.source),
        lookahead=lookahead.value,
        wording=loaded.wording,
        max_states=max_states,
        search_time=search_time,
    )
    asked = loaded.task(task, inputs=input_ or (), goal=goal)
    table = planner.table(asked)
    trial = _Trial(Walk(table, asked, wording=loaded.wording, on_event=_print_event), table.lookahead, Reasons(table))
    try:
        trial.run()
    finally:
        trial.end()


def _print_note(text: str) -> None:
    err().print(text)


def _print_event(event: Event) -> None:
    """Print what happens without being asked."""
    if isinstance(event, Forced):
        _print_note(f"taken without a question: {event.text} ({event.left_out} left out)")
    elif isinstance(event, Backtracked):
        _print_note(f"dead end; back to {' '.join(event.word) or 'the beginning'}, without: {event.text}")


class _Quit(Exception):
    """The person has seen enough."""


class _Trial:
    """A walk whose questions a person answers, with all the walks that it was before each answer."""

    def __init__(self, walk: Walk, lookahead: Lookahead, reasons: Reasons) -> None:
        self._walk = walk
        self._lookahead = lookahead
        self._reasons = reasons
        #: Before each answer: the walk as it stood, and the answer. Going back restores it.
        self._past: list[tuple[Walk, Answer]] = []
        self._undone: list[Answer] = []
        self._random = random.Random(0)
        self._commands: dict[str, Callable[[str], None]] = {
            "back": self._go_back, "again": self._redo_answer, "redo": self._redo_answer, "why": self._explain_option,
            "plan": self._show_plan, "left": self._count_left, "script": self._print_script, "help": self._print_help,
            "?": self._print_help, "quit": self._quit_trial, "exit": self._quit_trial,
        }  # fmt: skip

    def run(self) -> None:
        """Ask and listen until the person quits."""
        self._ask_question()
        while True:
            sys.stderr.write("> ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                sys.stderr.write("\n")
                return
            try:
                self._take_line(line.strip())
            except _Quit:
                return
            except (FormalLLMError, ValueError) as error:
                _print_note(said_of(error))

    def end(self) -> None:
        """Show the plan, finished or not, and how to come by it again."""
        plan = self._walk.partial
        if plan.word or plan.complete:
            print_text(str(plan) or EMPTY)
        if not plan.complete:
            _print_note(f"not finished: {counted(len(plan.word), 'terminal')} so far")
        if self._past:
            _print_note(f"to replay it: {self._format_replay()}")

    def _take_line(self, line: str) -> None:
        """One line that was typed: an answer or a command."""
        word, _, rest = line.partition(" ")
        found = self._commands.get(word.casefold())
        if found is not None and (not rest or word.casefold() == "why"):
            found(rest.strip())
        elif self._walk.done:
            if line:
                raise ValueError("the plan is finished; there is: back, plan, script, quit")
            raise _Quit
        elif line:
            self._give_answer(self._read_answer(line))

    def _read_answer(self, line: str) -> Answer:
        """The answer that a line gives: numbers, or the text of an option."""
        question = self._walk.question
        assert question is not None
        try:
            return question.read(line)
        except InvalidAnswer as error:
            named = named_options(line, [option.text for option in question.options])
            if len(named) == 1:
                return question.check(named[0])
            raise ValueError(f"{said_of(error)} (help tells what can be typed)") from None

    def _give_answer(self, answer: Answer, *, again: bool = False) -> None:
        before = self._walk.fork()
        try:
            self._walk.answer(answer)
        except NoValidPlan:
            self._walk = before.fork(on_event=_print_event)
            raise
        self._past.append((before, answer))
        if not again:
            self._undone.clear()
        self._ask_question()

    def _ask_question(self) -> None:
        question = self._walk.question
        if question is None:
            _print_note(f"\n{self._walk.plan}\n\nThe plan is finished. Enter ends; back takes the last answer back.")
            return
        _print_note(f"\n{question.prompt}")
        if left_out := self._reasons.count(self._walk):
            _print_note(f"({left_out} more left out by the rules: why)")

    # -- commands -------------------------------------------------------------------------------------------------

    def _go_back(self, _: str) -> None:
        if not self._past:
            raise ValueError("no question has been answered yet")
        before, answer = self._past.pop()
        self._undone.append(answer)
        self._walk = before.fork(on_event=_print_event)
        self._ask_question()

    def _redo_answer(self, _: str) -> None:
        if not self._undone:
            raise ValueError("no answer was taken back, or another one was given since")
        self._give_answer(self._undone.pop(), again=True)

    def _explain_option(self, what: str) -> None:
        if what:
            _print_note(self._reasons.about(self._walk, what))
        elif self._walk.question is None:
            _print_note("the plan is finished: there is no question")
        elif left_out := self._reasons.left_out(self._walk):
            _print_note("\n".join(f"not offered: {option.text}: {option.reason}" for option in left_out))
        else:
            _print_note("nothing is left out: these are all the options that there are here without the rules on top")

    def _show_plan(self, _: str) -> None:
        _print_note(
            self._walk.wording.progress(self._walk.partial.tree, self._walk.table.vocabulary.order)
            if not self._walk.done
            else str(self._walk.plan)
        )

    def _count_left(self, _: str) -> None:
        if self._walk.done:
            _print_note("the plan is finished")
            return
        here = self._walk.configuration
        try:
            many = count_plans(self._lookahead, here)
            word = self._lookahead.sample(self._random, here, of=many.of, max_length=many.bound)
        except Undecided as error:
            _print_note(f"not counted: {said_of(error)}")
            return
        _print_note(f"plans that are still possible: {many.describe_count('with at most {} more terminals')}")
        _print_note(
            f"one at random: {write_word((*self._walk.word, *(word or ())), self._walk.table.vocabulary.order)}"
        )

    def _format_replay(self) -> str:
        return f"--llm test:script={','.join('+'.join(map(str, answer.numbers)) for _, answer in self._past)}"

    def _print_script(self, _: str) -> None:
        _print_note(self._format_replay() if self._past else "no question has been answered yet")

    def _print_help(self, _: str) -> None:
        _print_note(_HELP)

    def _quit_trial(self, _: str) -> None:
        raise _Quit
