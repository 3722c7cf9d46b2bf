from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from formal_llm.llms.text_doubles import ScriptedTurnLLM
from formal_llm.procedures import Procedure, ProcedureSpans, arun_procedure, run_procedure
from tests.agents.test_tracing import attributes_of, children_of
from tests.planning.drivers.test_tracing import Provider

TEXT = """
check find(order: text)
goal action pay(order: text, amount: number)
    find(order) == "open"
"""
KNOWN: dict[str, Any] = {"order": "A7"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.provider.shutdown()


def make_spans(provider: Provider, content: bool = False) -> ProcedureSpans:
    return ProcedureSpans("openai:gpt-x", content=content, tracer=provider.provider.get_tracer("t"))


def fail(**_: object) -> bool:
    raise ValueError("Mallory")


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("awaits", [False, True])
def test_a_span_for_each_run_request_and_call(provider: Provider, content: bool, awaits: bool) -> None:
    tools = {"find": lambda order: "open", "pay": fail}
    llm = ScriptedTurnLLM([("", [("pay", {"order": "A7", "amount": 5})])])
    options: Any = {"native": True, "spans": make_spans(provider, content)}
    arguments: Any = (Procedure.from_string(TEXT), "Pay 5 for A7.", llm, tools)
    if awaits:
        asyncio.run(arun_procedure(*arguments, **options))
    else:
        run_procedure(*arguments, **options)
    found = provider.spans()
    (run,) = [span for span in found if span.parent is None]
    assert run.name == "invoke_workflow formal_llm.procedure"
    about = attributes_of(run)
    assert (about["formal_llm.ending"], about["formal_llm.goal"]) == ("handed over", "pay")
    assert about["gen_ai.usage.output_tokens"] > 0
    below = children_of(run, found)
    assert [span.name for span in below] == ["chat gpt-x", "execute_tool find", "execute_tool pay"]
    assert [span.status.status_code for span in below] == [StatusCode.UNSET, StatusCode.UNSET, StatusCode.ERROR]
    assert attributes_of(below[0])["gen_ai.provider.name"] == "openai"
    texts = " ".join(str(span.to_json()) for span in found)
    assert all((word in texts) is content for word in ("A7", "Mallory"))


def test_a_run_that_ends_by_an_error_is_marked(provider: Provider) -> None:
    tools = dict.fromkeys(("find", "pay"), lambda **_: "open")

    def user(_: object) -> object:
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        run_procedure(
            Procedure.from_string(TEXT), "", None, tools, goal="pay", known=KNOWN, user=user, spans=make_spans(provider)
        )
    run = next(span for span in provider.spans() if span.parent is None)
    assert attributes_of(run)["error.type"] == "RuntimeError"
