"""The options of ``formal-llm agent`` for a run that pauses, and what a person at the terminal answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.cli.console import answering_first_signal, err
from formal_llm.errors import AgentPaused, FormalLLMError, InputError

if TYPE_CHECKING:
    from formal_llm.agents import Transcript
    from formal_llm.agents.agent import Agent
    from formal_llm.agents.running import Run
    from formal_llm.errors.agents import WaitingCall

#: What an approval is answered with.
DECISIONS = "yes, no, or no: REASON"


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
            SnapshotError: the file holds no state of this agent.
        """
        if self.is_resumed and self.file is not None:
            from formal_llm.agents.pausing import PausedRun

            state = self.file.read_text(encoding="utf-8")
            waiting = PausedRun.from_json(state, self.agent.monitor.fingerprint).waiting
            self.run = self._resume(state, waiting, self.answers)
            self._show_past(self.run.transcript)
        else:
            self.run = self.agent.start(text)
        while True:
            try:
                made = self._drive(self.run)
            except AgentPaused as paused:
                answers = _ask_person(paused.waiting)
                if answers is None:
                    raise
                self.run = self._resume(paused.state, paused.waiting, answers)
            else:
                if self.file is not None:
                    self.file.unlink(missing_ok=True)
                return made

    def close(self) -> None:
        """Nothing is left to be ended."""

    def _drive(self, run: Run) -> Transcript:
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

    def _resume(self, state: str, waiting: Sequence[WaitingCall], answers: Mapping[str, str]) -> Run:
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


def _ask_person(waiting: Sequence[WaitingCall]) -> dict[str, str] | None:
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


def report_pause(waiting: Sequence[WaitingCall], file: Path | None) -> None:
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
