"""The tools of the published agents as tools of ours: for agents, planners, executors and MCP servers alike."""

from __future__ import annotations

import os
from pathlib import Path

from formal_llm.agents.tools.calculator import calculate as _calculate
from formal_llm.agents.tools.corpus import Corpus, CorpusSession
from formal_llm.tools.tool import Tool, source_version, tool
from formal_llm.tools.toolkit import Toolkit


@tool("calculate", pure=True)
def calculate(expression: str) -> str:
    """Calculate an expression such as 50% of 80, 10^2 or sqrt(2) * 3."""
    return _calculate(expression).text


def corpus_tools(session: CorpusSession) -> list[Tool]:
    """``search`` and ``lookup`` over a corpus, in a session: tools of one run.

    They are called in an order that matters, so no executor shares or caches what they give. Their version identifies
    what the corpus holds.
    """
    fingerprint = session.corpus.fingerprint
    return [
        tool(name, version=f"{source_version(function)} {fingerprint}")(function)
        for name, function in (("search", session.search), ("lookup", session.lookup))
    ]


def agent_toolkit(corpus: Corpus | str | os.PathLike[str] | None = None) -> Toolkit:
    """``calculate``, ``search`` and ``lookup``, for one run: make one for each concurrent run.

    Args:
        corpus: what is searched, or its file; the shipped one where left out.

    Raises:
        InputError: the file is no corpus.
    """
    if corpus is None:
        corpus = Corpus.shipped()
    elif not isinstance(corpus, Corpus):
        corpus = Corpus(Path(corpus))
    session = corpus.session()
    return Toolkit([calculate, *corpus_tools(session)], session=session)
