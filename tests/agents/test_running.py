"""One run: its budget, what stands in it, what a writer may not do."""

from __future__ import annotations

import pytest

from formal_llm.agents import Agent, Segment
from formal_llm.agents.tools import agent_toolkit
from formal_llm.errors import WritingError
from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.text_doubles import RandomTextLLM
from formal_llm.llms.usage import Prices


class Wrong:
    """A writer that does not ask the monitor."""

    def steps(self, *_, **__):  # type: ignore[no-untyped-def]
        yield Segment("Ans", "42")


def test_a_writer_that_leaves_the_rules_is_an_error() -> None:
    run = Agent("react", RandomLLM(), agent_toolkit, writer=lambda *_: Wrong()).start("q")
    with pytest.raises(WritingError, match="Ans was written where it cannot come"):
        run.go()
    assert [one.state for one in run.segments] == ["Ques"]


def test_a_writer_that_stops_too_early_is_an_error() -> None:
    run = Agent("direct", RandomLLM(), writer=lambda *_: iter_nothing()).start("q")
    with pytest.raises(Exception, match="it cannot end yet"):
        run.go()


class iter_nothing:  # noqa: N801
    def steps(self, *_, **__):  # type: ignore[no-untyped-def]
        yield from ()


def test_prices_make_costs() -> None:
    made = Agent("direct", RandomTextLLM(2), prices=Prices(1, 1)).run("q")
    tokens = made.usage.input_tokens + made.usage.output_tokens
    assert made.usage.cost == pytest.approx(tokens / 1_000_000)
