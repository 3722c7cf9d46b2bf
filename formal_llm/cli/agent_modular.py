"""``formal-llm agent modular``: the modular agent, which plans with one model and calls tools with another."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.cli.console import STANDARD, counted, err, out, print_text, write_to
from formal_llm.cli.sources import keep_answers

if TYPE_CHECKING:
    from rich.console import Console

    from formal_llm.agents.agent import Tools
    from formal_llm.agents.modular import ModularAgent, ModularRun, Module, ProgressEvent
    from formal_llm.automata import Limits


@dataclass(frozen=True)
class ModularOptions:
    """The options of the command line for a modular agent.

    Attributes:
        llm: who plans.
        tool_llm: who writes the arguments of tools.
        tools: its tools; the usual ones where None.
        corpus: what the usual ones search.
        rules: formulas over tools.
        limits: bounds on tools.
        requests, tokens: what a run may take.
        page, save, decisions: the files for the page, the transcript and the planner's decisions; of several turns, the
            last one's page and transcript.
        record, cache: the files for the answers of the models.
        quiet: whether the answer alone is printed.
    """

    llm: str
    tool_llm: str | None
    tools: Tools | None
    corpus: Path | None
    rules: Sequence[str]
    limits: Limits
    requests: int | None
    tokens: int | None
    page: Path | None
    save: Path | None
    decisions: Path | None
    record: Path | None
    cache: Path | None
    quiet: bool


def run_modular(questions: Iterable[str], options: ModularOptions) -> None:
    """Answer questions, each with those before it in mind."""
    from formal_llm.agents.modular import ModularRun, decision_rows, write_decisions
    from formal_llm.agents.page import modular_page

    shown = None if options.quiet else _Shown(err() if options.save == STANDARD else out())
    runs: list[ModularRun] = []
    with ExitStack() as stack:
        agent = _build_agent(options, stack)
        for question in questions:
            error: BaseException | None = None
            run = ModularRun(question)
            if shown is not None:
                shown.begin(question)
            try:
                memory = runs[-1].memory if runs else None
                run = agent.run(question, memory=memory, progress=shown)
            except Exception as caught:
                run, error = getattr(caught, "run", None) or run, caught
                raise
            finally:
                runs.append(run)
                if options.save is not None:
                    write_to(options.save, run.transcript.to_jsonl())
                if options.page is not None:
                    details = {
                        "LLM": ", ".join(filter(None, (options.llm, options.tool_llm))),
                        "Tools": ", ".join(agent.setup.modules),
                    }
                    write_to(options.page, modular_page(run, error=error, about=details))
                if options.decisions is not None:
                    write_decisions(options.decisions, decision_rows(runs, complete=False))
            if shown is None:
                print_text(run.answer or "")
            else:
                shown.end(run)


def _build_agent(options: ModularOptions, stack: ExitStack) -> ModularAgent:
    from formal_llm.agents.modular import ModularAgent, RunBudget
    from formal_llm.agents.modular.setup import index_modules
    from formal_llm.automata import constraint
    from formal_llm.llms.doubles import RandomLLM
    from formal_llm.llms.providers import check_providers

    check_providers(*filter(None, (options.llm, options.tool_llm)))
    modules = _list_modules(options)
    names = list(index_modules(modules))
    rules = [constraint(text, names, name=text) for text in options.rules]
    budget = RunBudget(requests=options.requests or 100, tokens=options.tokens)
    agent_of = partial(ModularAgent, modules=modules, rules=rules, limits=options.limits, budget=budget)
    agent_of(RandomLLM(can={"object"}))  # never asked: wrong arguments are reported before a model is loaded
    planner = _build_writer(options.llm, options, stack)
    caller = None if options.tool_llm is None else _build_writer(options.tool_llm, options, stack)
    return agent_of(planner, caller)


def _build_writer(name: str, options: ModularOptions, stack: ExitStack):  # type: ignore[no-untyped-def]
    """The model of a name, its answers kept and recorded."""
    from formal_llm.agents.modular.agent import resolve_writer
    from formal_llm.llms import resolve
    from formal_llm.llms.doubles import RandomLLM

    found = resolve(name)
    if not isinstance(found, RandomLLM):
        found = keep_answers(found, options.cache, options.record, stack)
    return resolve_writer(found)


def _list_modules(options: ModularOptions) -> list[Module]:
    from formal_llm.agents.modular import Module, ask, respond, standard_modules, terminal_user
    from formal_llm.tools.toolkit import Toolkit

    user = terminal_user() if sys.stdin.isatty() else None
    if options.tools is None:
        return list(standard_modules(options.corpus, user))
    toolkit = options.tools() if callable(options.tools) else options.tools
    assert isinstance(toolkit, Toolkit)
    asking = [ask(user)] if user is not None and "ask" not in toolkit.tools else []
    return [*asking, *map(Module, toolkit), respond()]


def lines() -> Iterator[str]:
    """The lines that the user types at the terminal, to their end."""
    while True:
        if sys.stdin.isatty():
            err().print("> ", end="")
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


class _Shown:
    """Shows what happens in a run of the modular agent."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, question: str) -> None:
        """Show a question."""
        self._print_line("request", question, "bold blue")

    def __call__(self, event: ProgressEvent) -> None:
        """Show what happened."""
        data = event.data
        match event.kind:
            case "decided":
                self._print_line("plan", f"{data['tool']}: {data['task']}", "bold green")
                if data["thoughts"]:
                    self.console.print(f"  {data['thoughts']}", style="dim")
            case "bound":
                self.console.print(f"  {data['call']}", style="dim")
            case "used":
                self._print_line(str(data["tool"]), str(data["result"]), "bold yellow")
            case "failed":
                self._print_line(f"{data['tool']} failed", str(data["problem"]), "bold red")
            case "corrected":
                self.console.print(f"corrected: {data['role']}: {data['problem']}", style="red")

    def _print_line(self, what: str, text: str, style: str) -> None:
        self.console.print(f"{what}: ", style=style, end="")
        self.console.print(text)

    def end(self, run: ModularRun) -> None:
        """Show what a run took."""
        steps, requests, corrected = len(run.word), run.usage.requests, len(run.corrections)
        summary = f"{counted(steps, 'step')}, {counted(requests, 'request')}, {counted(corrected, 'correction')}"
        self.console.print(summary, style="dim")
