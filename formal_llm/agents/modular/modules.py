"""The modules of a modular agent: tools, and the texts about them for the planner and for the caller.

A module is a tool of ours (:mod:`formal_llm.tools`) with a few words for models. Arguments are data: a model writes
them by the schema of the tool's signature. No module executes what a model writes. ``calculate`` reads an expression of
arithmetic, and a Python function runs in a process of its own, on arguments that were checked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.toolkit import calculate as _calculate
from formal_llm.errors import visible
from formal_llm.tools.isolated import isolated
from formal_llm.tools.tool import Tool, tool

#: Who answers what an agent asks: given the question, returns the answer.
User = Callable[[str], str]


@dataclass(frozen=True)
class Module:
    """A tool that a modular agent may use.

    Attributes:
        tool: the tool. Its description informs the planner of its purpose.
        guidance: how its arguments are written, for the model that writes them.
        summarised: whether long results are summarised with the task in mind.
        final: whether it ends the run; what it gives is the answer.
        nests: whether a call of it may stand as an argument of another one.
    """

    tool: Tool
    guidance: str = ""
    summarised: bool = False
    final: bool = False
    nests: bool = True

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name


def ask(user: User) -> Module:
    """Asks the user.

    Args:
        user: who answers: :func:`terminal_user`, :func:`scripted_user`, or any function.
    """

    @tool("ask", description="Ask the user for what only the user can know.")
    def ask_user(question: str) -> str:
        return user(question)

    return Module(ask_user, "Write one short question to the user.", nests=False)


def terminal_user(reads: TextIO | None = None, writes: TextIO | None = None) -> User:
    """A user at the terminal, who is shown a question and types a line."""

    def read_answer(question: str) -> str:
        out, lines = writes or sys.stderr, reads or sys.stdin
        out.write(f"\n{visible(question)}\n> ")
        out.flush()
        line = lines.readline()
        if not line:
            raise EOFError("the user's input ended")
        return line.rstrip("\n")

    return read_answer


def scripted_user(*answers: str) -> User:
    """A user who gives prepared answers in turn, and then is gone."""
    left = iter(answers)

    def next_answer(question: str) -> str:
        for one in left:
            return one
        raise EOFError(f"the script has no answer to {question!r}")

    return next_answer


def calculate() -> Module:
    """Calculates: the model writes an expression, and the calculator reads it."""
    guidance = (
        "Write the expression with numbers and no units, such as 50% of 80, 10^2 or sqrt(2) * 3. The numbers are those "
        "of the task and of the steps."
    )
    return Module(_calculate, guidance)


def search(corpus: Corpus | str | os.PathLike[str] | None = None) -> Module:
    """Searches a corpus on this machine; long results are summarised.

    Args:
        corpus: what is searched, or its file; the shipped one where left out.

    Raises:
        InputError: the file is no corpus.
    """
    found = Corpus.shipped() if corpus is None else corpus if isinstance(corpus, Corpus) else Corpus(Path(corpus))

    description = "Search a library of articles for facts, by the title of an article."

    @tool("search", description=description, version=f"1 {found.fingerprint}")
    def search_corpus(query: str) -> str:
        # A page of its own for each call: what was found before plays no part.
        return found.session().search(query)

    guidance = "Write the title of the article to look for: the name of a thing, a place or a person."
    return Module(search_corpus, guidance, summarised=True)


def function_call(
    where: str,
    *,
    memory: int | None = None,
    timeout: float | None = 30.0,
    summarised: bool = False,
) -> Module:
    """Calls a Python function of yours, in a process of its own (see :func:`formal_llm.tools.isolated`).

    Args:
        where: module and name of a tool or of a plain function with type hints, as in ``"my_tools:convert"``.
        memory: how many bytes the process may use; None for no bound.
        timeout: seconds for one call; then the process is killed.
        summarised: whether long results are summarised.

    Raises:
        ToolkitError: there is no such function, or a type hint of it is missing.
    """
    return Module(isolated(where, memory=memory, timeout=timeout), summarised=summarised)


def respond() -> Module:
    """Gives the answer, and ends the run."""

    @tool("respond", description="Give the user the final answer.")
    def return_answer(answer: str) -> str:
        return answer

    guidance = "Write the answer to the user's request, from what the steps found."
    return Module(return_answer, guidance, final=True, nests=False)


def standard_modules(
    corpus: Corpus | str | os.PathLike[str] | None = None, user: User | None = None
) -> tuple[Module, ...]:
    """Search, calculate and respond; and ask, where there is a user."""
    asking = (ask(user),) if user is not None else ()
    return (*asking, search(corpus), calculate(), respond())
