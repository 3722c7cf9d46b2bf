"""``formal-llm agent``: one run of an agent, as it happens; it pauses, and a person at the terminal answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import typer

from formal_llm import authored
from formal_llm.cli.agent_modular import ModularOptions, lines, run_modular
from formal_llm.cli.console import (
    STANDARD,
    answering_first_signal,
    check_writable,
    command,
    counted,
    err,
    out,
    print_text,
    write_to,
)
from formal_llm.cli.options import LimitOption, LLMOption, RequireOption, RuleOption
from formal_llm.cli.sources import keep_answers, read_limits, read_words
from formal_llm.errors import AgentPaused, FormalLLMError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from formal_llm.agents import Transcript
    from formal_llm.agents.agent import Agent, Tools
    from formal_llm.agents.conversation import Conversation
    from formal_llm.agents.pausing import Waiting
    from formal_llm.agents.run_events import RunEvent
    from formal_llm.agents.running import Run

#: The agent of modules; it has no file.
MODULAR = "modular"
#: What an approval is answered with.
DECISIONS = "yes, no, or no: REASON"
_NOT_MODULAR = "--native, --text, --instructions, --approve, --state, --resume, --answer"

HELP = """Ask an agent a question and see what it does: its states as they are written, its tools, what was corrected.

The agent is a shipped one (react, rewoo, reflexion, pass, chain-of-thought, direct, chat-bot, modular ...) or an .agent
file of your own. Whatever the model writes, the run follows the order that the file says. The tools are calculate, and
search and lookup over the shipped corpus or the one of --corpus.

Examples:

  formal-llm agent react "Into which sea does the Danube flow?" --llm openai:gpt-6-luna

  formal-llm agent react "How many rivers flow into the Black Sea?" --llm test:random --limit search=2 --page run.html

  formal-llm agent my.agent "..." --tools my_tools:toolkit --rule "search before answer"

  formal-llm agent chat-bot-endless "Good morning." --llm openai:gpt-6-luna --chat

  formal-llm agent modular "How long is half of the Rhine?" --llm openai:gpt-6-luna --require search=1 --chat

With --chat it goes on with what you type, line by line, until the input ends. chat-bot-endless is one run over all
lines.

Hosted models call tools by their provider's own means, others write texts behind markers (--native, --text). You are
asked at the terminal before a tool of --approve is called, and what a tool asks the user. With --state FILE the run
pauses where nobody can answer (exit code 5), at Ctrl-C, and where it fails, and continues with --resume FILE:

  formal-llm agent react "Pay." --llm openai:gpt-6-luna --tools my_tools:kit --approve pay --state run.json

  formal-llm agent react --resume run.json --answer 4.0=yes --llm openai:gpt-6-luna --tools my_tools:kit --approve pay

The modular agent plans with --llm and writes the arguments of its tools with --tool-llm; its tools may have any
signature.
"""


def _complete_agents(begun: str) -> list[str]:
    return [name for name in [*authored.names("agents"), MODULAR] if name.startswith(begun)]


AgentArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help="A shipped agent, or an .agent file.", autocompletion=_complete_agents)
]
CorpusOption = Annotated[
    Path | None, typer.Option("--corpus", metavar="FILE", help="What is searched; the small shipped one if left out.")
]
ToolsOption = Annotated[
    str | None,
    typer.Option(
        "--tools", metavar="MODULE:NAME", help="A toolkit, or what makes one, in your own code; or a NAME of a plugin."
    ),
]
TimesOption = Annotated[
    int | None, typer.Option(min=1, help="How often each state and tool may come at most; 12 if left out.")
]

NativeOption = Annotated[
    bool | None,
    typer.Option("--native/--text", help="Calls of tools by the provider's own means, or texts behind markers."),
]
ApproveOption = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="TOOL", help="A person has to approve the calls of TOOL. Repeatable."),
]
AnswerOption = Annotated[
    list[str] | None,
    typer.Option("--answer", metavar="ID=TEXT", help="The answer to a call that --resume waits for. Repeatable."),
]


@command
def agent(
    spec: AgentArgument,
    llm: LLMOption,
    question: Annotated[str | None, typer.Argument(help="What it is asked.")] = None,
    corpus: CorpusOption = None,
    tools: ToolsOption = None,
    limit: LimitOption = None,
    require: RequireOption = None,
    rule: RuleOption = None,
    times: TimesOption = None,
    max_questions: Annotated[int | None, typer.Option(min=1, help="End the run after this many questions.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="End the run after this many tokens.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the run as a web page.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the transcript as JSON lines.")] = None,
    record: Annotated[Path | None, typer.Option(metavar="FILE", help="Record all answers of the LLM.")] = None,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep answers, and ask nothing twice.")] = None,
    tool_llm: Annotated[str | None, typer.Option(metavar="LLM", help="Who calls tools for the modular agent.")] = None,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what the modular agent planned, to train on.")
    ] = None,
    native: NativeOption = None,
    instructions: Annotated[
        str | None, typer.Option(metavar="TEXT|@FILE", help="What the agent is and how it is to behave.")
    ] = None,
    approve: ApproveOption = None,
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the state of a run that pauses.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Continue the run in FILE, in place of a question.")
    ] = None,
    answer: AnswerOption = None,
    chat: Annotated[bool, typer.Option("--chat", help="Go on with the lines that are typed.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer alone.")] = False,
) -> None:
    """Run an agent."""
    pausing = PausingOptions(tuple(approve or ()), state, resume, read_answers(answer or ()))
    text = _read_question(question, resume)
    check_writable(page, save, decisions, record, cache, state, resume)
    limits = read_limits(limit, require)
    questions = chain([text], lines() if chat else ())
    if spec == MODULAR:
        if pausing != PausingOptions() or native is not None or instructions is not None:
            raise InputError(f"the modular agent takes none of {_NOT_MODULAR}")
        run_modular(questions, ModularOptions(
            llm, tool_llm, None if tools is None else tools_of(tools, corpus), corpus, rule or (),
            limits if times is None else replace(limits, default=times), max_questions, max_tokens,
            page, save, decisions, record, cache, quiet,
        ))  # fmt: skip
        return
    if tool_llm is not None or decisions is not None:
        raise InputError("--tool-llm and --decisions are for the modular agent: formal-llm agent modular")
    from formal_llm.agents.agent import TIMES, Agent, ensure_text_llm
    from formal_llm.agents.conversation import Conversation
    from formal_llm.llms import resolve
    from formal_llm.llms.doubles import TEXTS, RandomLLM
    from formal_llm.planning import Budget

    shown = None if quiet else StatePrinter(err() if save == STANDARD else out())
    make_agent = partial(
        Agent, spec, tools=tools_of(tools, corpus), rules=rule or (), limits=limits, times=times or TIMES,
        budget=Budget(questions=max_questions, tokens=max_tokens), streaming=True, on_event=shown, native=native,
        instructions=read_words(instructions or ""), approve=pausing.approve,
    )  # fmt: skip
    tried = make_agent(RandomLLM(can=TEXTS))  # never asked: wrong arguments are reported before a model is loaded
    pausing.check(is_single=not chat and not tried.behaviour.endless)
    with ExitStack() as opened:
        found = ensure_text_llm(resolve(llm), calls_tools=native is True)
        made = make_agent(keep_answers(found, cache, record, opened))
        talk = Conversation(made) if chat or made.behaviour.endless else pausing.start(made)
        try:
            _hold_conversation(talk, questions, llm, shown, save=save, page=page)
        except AgentPaused as paused:
            report_pause(paused.waiting, pausing.file)
            raise typer.Exit(5 if paused.waiting else 130) from None


def _read_question(question: str | None, resume: Path | None) -> str:
    if resume is not None:
        if question is not None:
            raise InputError(f"{resume} has the question; leave it out")
        return ""
    if question is None or not question.strip():
        raise InputError("there is no question; write what the agent is asked")
    return question


def _hold_conversation(
    talk: Conversation | PausableRun,
    questions: Iterable[str],
    llm: str,
    shown: StatePrinter | None,
    *,
    save: Path | None,
    page: Path | None,
) -> None:
    """Ask an agent questions, each with those before it in mind; what it does is shown, and written down after each."""
    from formal_llm.agents.page import run_page

    for text in questions:
        error: BaseException | None = None
        try:
            made = talk.say(text)
        except Exception as caught:
            error = caught
            raise
        finally:
            if shown is not None:
                shown.end_line()
            run = talk.run
            if save is not None and run is not None:
                write_to(save, run.transcript.to_jsonl())
            if page is not None and run is not None:
                details = {"LLM": llm, "Tools": ", ".join(run.toolkit.tools) or "none"}
                write_to(page, run_page(run.transcript, talk.agent.behaviour, run.calls, error=error, about=details))
        if shown is None:
            print_text(made.answer)
        else:
            took = made.usage
            shown.end(took.questions, took.requests, len(made.corrections))
    talk.close()


@dataclass(frozen=True)
class PausingOptions:
    """The options of the command line for a run that pauses.

    Attributes:
        approve: the tools whose calls a person has to approve.
        state: the file for the state of a run that begins.
        resume: the file of the run that continues.
        answers: the answers to calls that it waits for, by their names.
    """

    approve: tuple[str, ...] = ()
    state: Path | None = None
    resume: Path | None = None
    answers: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path | None:
        """The file of the state."""
        return self.resume or self.state

    def check(self, *, is_single: bool) -> None:
        """Report options that contradict each other, before anything is asked.

        Args:
            is_single: whether one question is answered by one run.

        Raises:
            InputError: they do.
        """
        state, resume = self.state, self.resume
        if not is_single and self != PausingOptions():
            raise InputError("--approve, --state, --resume and --answer are for one question, not for a conversation")
        if state is not None and resume is not None:
            raise InputError(f"--resume {resume} keeps the state in the same file; leave --state out")
        if state is not None and state.exists():
            raise InputError(f"{state} is there already; continue its run with --resume {state}, or remove it")
        if resume is not None and not resume.is_file():
            raise InputError(f"{resume}: there is no such file")
        if self.answers and resume is None:
            raise InputError("--answer is for a run that continues: --resume FILE")
        if self.approve and self.file is None and not sys.stdin.isatty():
            raise InputError("nobody is at the terminal who approves calls; name a file for the run: --state FILE")

    def start(self, agent: Agent) -> PausableRun:
        """The run."""
        return PausableRun(agent, self.file, self.resume is not None, self.answers)


@dataclass
class PausableRun:
    """A run that pauses at Ctrl-C, where it waits for a person, and where it fails; it continues from a file.

    It answers one question, as a :class:`~formal_llm.agents.Conversation` answers many.

    Attributes:
        agent: the agent.
        file: the file of its state, which is removed when the run has ended; None if there is none.
        is_resumed: whether it continues from that file.
        answers: the answers to calls that it waits for, by their names.
        run: the run; None before it begins.
    """

    agent: Agent
    file: Path | None = None
    is_resumed: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)
    run: Run | None = None

    def say(self, text: str) -> Transcript:
        """Answer a question, and return the run.

        Raises:
            AgentPaused: the run has paused; its state is in the file, if there is one.
            RecordError: the file holds no state of this agent.
        """
        if self.is_resumed and self.file is not None:
            from formal_llm.agents.pausing import PausedRun

            state = self.file.read_text(encoding="utf-8")
            waiting = PausedRun.from_json(state, self.agent.monitor.fingerprint).waiting
            self.run = self._resume_run(state, waiting, self.answers)
            self._show_past(self.run.transcript)
        else:
            self.run = self.agent.start(text)
        while True:
            try:
                made = self._run_to_end(self.run)
            except AgentPaused as paused:
                answers = _ask_person(paused.waiting)
                if answers is None:
                    raise
                self.run = self._resume_run(paused.state, paused.waiting, answers)
            else:
                if self.file is not None:
                    self.file.unlink(missing_ok=True)
                return made

    def close(self) -> None:
        """Nothing is left to be ended."""

    def _run_to_end(self, run: Run) -> Transcript:
        """Run to the end; where that fails, the state of the run is in the file."""
        if self.file is None:
            return run.run_to_end()
        try:
            with answering_first_signal(run.pause, "the run pauses as soon as what is under way is finished"):
                return run.run_to_end()
        except (FormalLLMError, KeyboardInterrupt) as error:
            state = error.state if isinstance(error, AgentPaused) else run.pause()
            self.file.write_text(state, encoding="utf-8")
            if not isinstance(error, AgentPaused):
                again = "; what was under way is done again" if isinstance(error, KeyboardInterrupt) else ""
                err().print(f"the run can be continued: {_how_to_continue(self.file)}{again}")
            raise

    def _resume_run(self, state: str, waiting: Sequence[Waiting], answers: Mapping[str, str]) -> Run:
        approvals = {one.id for one in waiting if one.kind == "approval"}
        approved = {name: _read_approval(name, text) for name, text in answers.items() if name in approvals}
        results = {name: text for name, text in answers.items() if name not in approvals}
        return self.agent.resume(state, approved=approved, results=results)

    def _show_past(self, past: Transcript) -> None:
        from formal_llm.agents.run_events import Began, Wrote

        if self.agent.on_event is not None:
            for segment in past.segments:
                self.agent.on_event(Began(segment.state, segment.source))
                self.agent.on_event(Wrote(segment.state, segment.text))


def read_answers(pairs: Sequence[str]) -> dict[str, str]:
    """The answers that ``--answer ID=TEXT`` gives.

    Raises:
        InputError: one is not of that form.
    """
    answers = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--answer takes ID=TEXT, as in --answer 4.0=yes; not {pair!r}")
        answers[name.strip()] = text.strip()
    return answers


def _read_decision(text: str) -> bool | str | None:
    """What a person decided about a call: True, False, or the reason against it; None if the text is no decision."""
    word, _, reason = text.partition(":")
    if word.strip().lower() in ("y", "yes"):
        return True
    return (reason.strip() or False) if word.strip().lower() in ("n", "no") else None


def _read_approval(name: str, text: str) -> bool | str:
    found = _read_decision(text)
    if found is None:
        raise InputError(f"{name} waits for an approval: --answer {name}=TEXT with {DECISIONS}; not {text!r}")
    return found


def _ask_person(waiting: Sequence[Waiting]) -> dict[str, str] | None:
    """The answers of the person at the terminal; None if there is nothing to be answered, or nobody who answers."""
    from formal_llm.agents.modular import terminal_user

    if not waiting or not sys.stdin.isatty():
        return None
    read_answer, answers = terminal_user(), {}
    try:
        for one in waiting:
            if one.kind == "result":
                answers[one.id] = read_answer(one.question)
                continue
            asked = f"{one.tool}({one.input}): shall it be called? {DECISIONS}"
            while _read_decision(text := read_answer(asked)) is None:
                pass
            answers[one.id] = text
    except (EOFError, KeyboardInterrupt):
        return None
    return answers


def _how_to_continue(file: Path) -> str:
    return f"the same command with --resume {file} in place of the question"


def report_pause(waiting: Sequence[Waiting], file: Path | None) -> None:
    """Report on standard error what a run waits for, and how it is continued."""
    console = err()
    for one in waiting:
        what = "approval" if one.kind == "approval" else one.question
        console.print(f"{one.id}: {one.tool}({one.input}) waits for: {what}")
    if file is None:
        console.print("the run has ended, since nobody can answer here; with --state FILE it can be continued")
        return
    answers = f", and --answer ID=TEXT for each of these calls (an approval: {DECISIONS})" if waiting else ""
    console.print(f"the run has paused; to continue: {_how_to_continue(file)}{answers}")


def tools_of(name: str | None, corpus: Path | None) -> Tools:
    """The tools that the options name.

    Raises:
        ToolkitError: there are none of that name.
        InputError: the corpus cannot be read.
    """
    from formal_llm.agents.tools.corpus import Corpus
    from formal_llm.agents.tools.toolkit import agent_toolkit
    from formal_llm.errors import ToolkitError
    from formal_llm.tools.toolkit import Toolkit, toolkit_named

    if name is None:
        opened = Corpus.shipped() if corpus is None else Corpus(corpus)
        return lambda: agent_toolkit(opened)
    if ":" not in name:
        return partial(toolkit_named, name)
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # a module in the folder where one stands, as python -m finds it
    try:
        found: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolkitError([f"there is no toolkit {name!r} (module:name): {error}"]) from error
    finally:
        sys.path.remove("")
    if isinstance(found, Toolkit):
        return found
    if not callable(found):
        raise ToolkitError([f"{name} is no toolkit, and no function that makes one (module:name)"])
    return cast("Callable[[], Toolkit]", found)


class StatePrinter:
    """Shows what happens, each state in the colour of who writes it."""

    _COLOURS: ClassVar = {"user": "blue", "model": "green", "forced": "green", "environment": "yellow"}

    def __init__(self, console: Console) -> None:
        self.console = console
        self._begun = False  # whether a line is begun
        self._wrote = False  # whether it has text
        self._held = ""  # blanks that are shown where more text comes

    def __call__(self, event: RunEvent) -> None:
        """Show it."""
        from formal_llm.agents.run_events import Began, Called, Corrected, Withdrawn, Wrote

        match event:
            case Began(state, source):
                self.end_line()
                self.console.print(f"{state}: ", style=f"bold {self._COLOURS[source]}", end="")
                self._begun, self._wrote, self._held = True, False, ""
            case Wrote(_, text):
                self._show_piece(text)
            case Withdrawn(state):
                self.end_line()
                self.console.print(f"  {state} is withdrawn", style="dim")
            case Corrected(correction):
                self.end_line()
                self.console.print(f"corrected: {correction}", style="red")
                if correction.reason:
                    self.console.print(f"  {correction.reason}", style="dim")
            case Called(call):
                self.end_line()
                mark = "" if call.ok else " failed"
                label = f"{call.label} = " if call.label else ""
                self.console.print(f"  {label}{call.tool}({call.input}){mark}", style="dim")

    def _show_piece(self, text: str) -> None:
        """Show a piece of a text; the blanks at the ends of the whole do not count."""
        text = self._held + text if self._wrote else text.lstrip()
        shown = text.rstrip()
        self._held = text[len(shown) :]
        self._wrote = self._wrote or bool(shown)
        self._begun = self._begun or bool(shown)
        self.console.print(shown, end="")

    def end_line(self) -> None:
        """End the line that is begun."""
        if self._begun:
            self.console.print()
            self._begun, self._held = False, ""

    def end(self, questions: int, requests: int, corrections: int) -> None:
        """Show what it took."""
        self.end_line()
        sys.stdout.flush()
        summary = (
            f"{counted(questions, 'question')}, {counted(requests, 'request')}, {counted(corrections, 'correction')}"
        )
        self.console.print(summary, style="dim")
