"""``formal-llm try``: the author of rules answers the questions, takes answers back, and asks why."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from formal_llm.automata import Lookahead
from formal_llm.automata.languages.word_lists import count_plans
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME
from formal_llm.cli import options
from formal_llm.cli.console import command, counted, err, print_text, said_of
from formal_llm.cli.plan import LookaheadMode, LookaheadOption
from formal_llm.cli.sources import load, read_limits
from formal_llm.errors import FormalLLMError, InvalidAnswer, NoValidPlan, Undecided
from formal_llm.llms import Answer
from formal_llm.llms.reading import named_options
from formal_llm.planning import Planner, Walk
from formal_llm.planning.checking.reasons import Reasons
from formal_llm.planning.plans.vocabulary import EMPTY, write_word
from formal_llm.planning.walks.events import Backtracked, Event, Forced

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
    process: options.ProcessOption = None,
    final: options.FinalOption = None,
    order: options.OrderOption = None,
) -> None:
    """Try rules."""
    loaded = load(source, set_, order=None if order is None else order.value, process=process, final=final)
    planner = Planner(
        loaded.source,
        "test:first",  # never asked: the person at the terminal answers
        constraints=loaded.constraints,
        limits=read_limits(limit, require),
        lookahead=lookahead.value,
        wording=loaded.wording,
        max_states=max_states,
        search_time=search_time,
    )
    asked = loaded.task(task, inputs=input_ or (), goal=goal)
    table = planner.table(asked)
    trial = _Trial(Walk(table, asked, wording=loaded.wording, on_event=_tell), table.lookahead, Reasons(table))
    try:
        trial.run()
    finally:
        trial.end()


def _say(text: str) -> None:
    err().print(text)


def _tell(event: Event) -> None:
    """Print what happens without being asked."""
    if isinstance(event, Forced):
        _say(f"taken without a question: {event.text} ({event.left_out} left out)")
    elif isinstance(event, Backtracked):
        _say(f"dead end; back to {' '.join(event.word) or 'the beginning'}, without: {event.text}")


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
            "back": self._back, "again": self._again, "redo": self._again, "why": self._why, "plan": self._show,
            "left": self._left, "script": self._script, "help": self._help, "?": self._help, "quit": self._quit,
            "exit": self._quit,
        }  # fmt: skip

    def run(self) -> None:
        """Ask and listen until the person quits."""
        self._ask()
        while True:
            sys.stderr.write("> ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                sys.stderr.write("\n")
                return
            try:
                self._take(line.strip())
            except _Quit:
                return
            except (FormalLLMError, ValueError) as error:
                _say(said_of(error))

    def end(self) -> None:
        """Show the plan, finished or not, and how to come by it again."""
        plan = self._walk.partial
        if plan.word or plan.complete:
            print_text(str(plan) or EMPTY)
        if not plan.complete:
            _say(f"not finished: {counted(len(plan.word), 'terminal')} so far")
        if self._past:
            _say(f"to replay it: {self._replay()}")

    def _take(self, line: str) -> None:
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
            self._answer(self._read(line))

    def _read(self, line: str) -> Answer:
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

    def _answer(self, answer: Answer, *, again: bool = False) -> None:
        before = self._walk.fork()
        try:
            self._walk.answer(answer)
        except NoValidPlan:
            self._walk = before.fork(on_event=_tell)
            raise
        self._past.append((before, answer))
        if not again:
            self._undone.clear()
        self._ask()

    def _ask(self) -> None:
        question = self._walk.question
        if question is None:
            _say(f"\n{self._walk.plan}\n\nThe plan is finished. Enter ends; back takes the last answer back.")
            return
        _say(f"\n{question.prompt}")
        if left_out := self._reasons.count(self._walk):
            _say(f"({left_out} more left out by the rules: why)")

    # -- commands -------------------------------------------------------------------------------------------------

    def _back(self, _: str) -> None:
        if not self._past:
            raise ValueError("no question has been answered yet")
        before, answer = self._past.pop()
        self._undone.append(answer)
        self._walk = before.fork(on_event=_tell)
        self._ask()

    def _again(self, _: str) -> None:
        if not self._undone:
            raise ValueError("no answer was taken back, or another one was given since")
        self._answer(self._undone.pop(), again=True)

    def _why(self, what: str) -> None:
        if what:
            _say(self._reasons.about(self._walk, what))
        elif self._walk.question is None:
            _say("the plan is finished: there is no question")
        elif left_out := self._reasons.left_out(self._walk):
            _say("\n".join(f"not offered: {option.text}: {option.reason}" for option in left_out))
        else:
            _say("nothing is left out: these are all the options that there are here without the rules on top")

    def _show(self, _: str) -> None:
        _say(self._walk.wording.progress(self._walk.partial.tree) if not self._walk.done else str(self._walk.plan))

    def _left(self, _: str) -> None:
        if self._walk.done:
            _say("the plan is finished")
            return
        here = self._walk.configuration
        try:
            many = count_plans(self._lookahead, here)
            word = self._lookahead.sample(self._random, here, of=many.of, max_length=many.bound)
        except Undecided as error:
            _say(f"not counted: {said_of(error)}")
            return
        _say(f"plans that are still possible: {many.describe_count('with at most {} more terminals')}")
        _say(f"one at random: {write_word((*self._walk.word, *(word or ())))}")

    def _replay(self) -> str:
        return f"--llm test:script={','.join('+'.join(map(str, answer.numbers)) for _, answer in self._past)}"

    def _script(self, _: str) -> None:
        _say(self._replay() if self._past else "no question has been answered yet")

    def _help(self, _: str) -> None:
        _say(_HELP)

    def _quit(self, _: str) -> None:
        raise _Quit
