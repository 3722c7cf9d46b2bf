"""Turns with calls of tools: what a model may call is offered, and whatever it calls, the run keeps the rules."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour, Limits
from formal_llm.agents import Agent, Transcript
from formal_llm.agents.decoding.native import NativeWriter, ToolStates
from formal_llm.agents.decoding.writer import Bounds
from formal_llm.agents.run_events import Began, Withdrawn, Wrote
from formal_llm.errors import ProviderError, ToolkitError, WritesNoText, WritingError
from formal_llm.llms.doubles import TEXTS, TURNS, FunctionLLM, RandomLLM, ScriptedLLM
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import CUT_OFF, FILTERED, REFUSED, TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.tools import tool
from tests.strategies import examples

NAMES = ["react", "react-5", "rewoo", "pass", "pass-5", "reflexion", "reflexion-2-3", "chat-bot"]
WORDS = ("so", "pay", "rm", "Danube", "[Answer]", "#E1", "")


@tool
def search(query: str) -> str:
    """Searches."""
    return f"[Answer] {query}"


@tool
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@tool
def pay(amount: float) -> str:
    """Pays."""
    return f"paid {amount}"


TOOLS = [search, add, pay]
RULES: dict[str, dict[str, object]] = {
    "free": {},
    "owed": {"rules": ["(eventually pay)"]},
    "ordered": {"rules": ["(next search (until add pay))"]},
    "limited": {"limits": Limits({"pay": 1, "search": 2, "add": 0})},
}
_made: dict[tuple[str, str], Agent] = {}


def agent_of(name: str, ruled: str) -> Agent:
    if (name, ruled) not in _made:
        _made[name, ruled] = Agent(name, RandomLLM(can=TURNS), TOOLS, **RULES[ruled])  # type: ignore[arg-type]
    return _made[name, ruled]


@given(st.sampled_from(NAMES), st.sampled_from([*RULES]), st.sampled_from([0.0, 0.3, 0.9]), st.integers(0, 10**9))
@examples(120)
def test_whatever_is_called_the_run_keeps_the_rules(name: str, ruled: str, lies: float, seed: int) -> None:
    agent = agent_of(name, ruled)
    run = agent.start("How long?", llm=RandomLLM(seed, can=TURNS, words=WORDS, lies=lies))
    try:
        made = run.run_to_end()
    except WritingError as error:
        assert "turns could not be used" in str(error) or "requests" in str(error)
        made = run.transcript
    else:
        assert made.verify(agent.behaviour).valid
        assert agent.monitor.verify(agent.rules.list_events(made.segments), repair=False).valid
    # What was carried out is what the rules allow, in their order, and nothing else was.
    agent.monitor.after_all(agent.rules.list_events(made.segments))
    named = [one.text for one in made.segments if one.state == run.settings.roles.action]
    called = [call.tool for call in run.calls]
    if name == "rewoo":  # its workers go by what refers to what
        called, named = sorted(called), sorted(named) if called else []
    assert called == named[: len(called)] and set(named) <= {"search", "add", "pay", "LLM"}
    for segment in made.segments[1:]:
        assert (segment.source == "environment") == agent.behaviour.states[segment.state].from_environment
    assert Transcript.from_jsonl(made.to_jsonl()) == made


def run_turns(*turns, name="react", tools=TOOLS, **how):  # type: ignore[no-untyped-def]
    llm = ScriptedLLM(texts=turns, can=TURNS)
    run = Agent(name, llm, tools, **how).start("q")
    return run.run_to_end(), llm.requests, run


def test_k_rounds_take_k_plus_one_requests() -> None:
    for rounds in (0, 1, 3, 5):
        turns = [("", [("add", {"a": number, "b": None})]) for number in range(rounds)]
        made, requests, _ = run_turns(*turns, "done")
        assert len(requests) == made.usage.requests == rounds + 1 and made.corrections == ()
        assert made.answer == "done" and made.word.count("Obs") == rounds


def test_the_chat_is_that_of_the_provider_and_the_states_are_those_of_the_behaviour() -> None:
    made, requests, _ = run_turns(("I add.", [("add", {"a": 2, "b": 3})]), "Five.", instructions="Be brief.")
    assert [(one.state, one.text) for one in made.segments] == [
        ("Ques", "q"), ("Tht", "I add."), ("Act", "add"), ("Act-Inp", '{"a": 2, "b": 3}'), ("Obs", "5"),
        ("Final-Tht", ""), ("Ans", "Five."),
    ]  # fmt: skip
    last = requests[-1].messages
    assert [(one.role, one.content) for one in last] == [
        ("system", "Be brief."), ("user", "q"), ("assistant", "I add."), ("tool", "5"),
    ]  # fmt: skip
    assert last[2].calls[0].id == last[3].answers and last[2].calls[0].name == "add"
    # What is sent again begins with what was sent: nothing is read twice by a server that keeps it.
    assert last[: len(requests[0].messages)] == requests[0].messages


def test_only_what_may_be_called_is_offered_and_what_is_owed_is_required() -> None:
    _, requests, _ = run_turns(
        ("", [("search", {"query": "x"})]), ("", [("pay", {"amount": 1.5})]), "done",
        rules=["(next search pay)"], limits=Limits({"add": 0}),
    )  # fmt: skip
    offered = [([one.name for one in turn.tools], turn.must_call) for turn in requests]
    assert offered == [(["search"], True), (["pay"], True), ([], False)]


def test_a_liar_is_refused_with_the_reason_and_on_record() -> None:
    made, requests, run = run_turns(
        ("", [("pay", {"amount": 1})]), "I have paid.", ("", [("rm", "-rf")]), ("", [("search", {"query": "x"})]), "ok",
        rules=["(eventually search)"], limits=Limits({"pay": 0}),
    )  # fmt: skip
    assert [call.tool for call in run.calls] == ["search"] and made.answer == "ok"
    assert [one.written for one in made.corrections] == ["pay", "I have paid.", "rm"]
    assert made.corrections[0].legal == ("search", "add")
    refused = requests[3].messages
    assert refused[2].role == "tool" and "pay may not be called now" in refused[2].content
    assert refused[4].content == "This could not be used: a tool has to be called first: search or add"
    assert "there is no tool 'rm'" in refused[6].content
    with pytest.raises(WritingError, match="3 turns could not be used: there is no tool 'rm'"):
        run_turns(*[("", [("rm", "")])] * 3, bounds=Bounds(corrections=2))


def test_parallel_calls_are_taken_as_a_set_or_one_after_the_other_as_the_rules_need() -> None:
    both = ("both", [("search", {"query": "a"}), ("add", {"a": 1, "b": 1})])
    made, requests, run = run_turns(both, "done")
    assert len(requests) == 2 and [call.output for call in run.calls] == ["[Answer] a", "2"]
    assert made.word.count("Obs") == 2 and [one.text for one in made.segments if one.state == "Tht"] == ["both", ""]
    made, requests, run = run_turns(("plan", [("search", {"query": "a"}), ("LLM", {"request": "Say #E1"})]), "said",
                                    "done", name="rewoo")  # fmt: skip
    assert len(requests) == 3 and made.answer == "done"  # the plan, the worker that is the model, the solver
    assert [(call.label, call.output) for call in run.calls] == [("#E1", "[Answer] a"), ("#E2", "said")]
    assert json.loads(run.calls[1].input) == {"request": "Say [Answer] a"}


def test_a_call_that_the_one_before_made_impossible_is_left_out_on_record() -> None:
    twice = ("", [("pay", {"amount": 1}), ("pay", {"amount": 2}), ("search", {"query": "x"})])
    made, requests, run = run_turns(twice, "done", limits=Limits({"pay": 1}))
    assert [call.tool for call in run.calls] == ["pay", "search"]
    (correction,) = made.corrections
    assert correction.written == "pay" and "may not be called now" in correction.reason
    assert len(requests) == 2 and 'pay({"amount": 2}) was not carried out' in requests[-1].messages[-1].content
    first = ("", [("pay", {"amount": 1}), ("pay", {"amount": 2})])
    made, requests, run = run_turns(first, "done", limits=Limits({"pay": 1}))
    assert 'pay({"amount": 2}) was not carried out' in requests[-1].messages[-1].content


def test_several_calls_before_one_observation() -> None:
    behaviour = Behaviour.from_string("""(define several (:states (q (:text "[Q]")) (a (:text "[Action]"))
        (i (:text "[Action Input]")) (o (:text "[Observation]") (:flags :env-input)) (r (:text "[R]")))
        (:behavior (next q (until (next (until (next a i) (next a i)) o) r))))""")
    both = ("lost", [("search", {"query": "a"}), ("add", {"a": 1, "b": 1})])
    made, requests, _ = run_turns(both, "done", name=behaviour)
    assert made.text_of("o") == 'search({"query": "a"}):\n[Answer] a\n\nadd({"a": 1, "b": 1}):\n2'
    assert [one.role for one in requests[1].messages] == ["user", "assistant", "tool", "tool"]
    assert [(one.written, one.reason) for one in made.corrections] == [("lost", "no state may have a text here")]


def test_answers_are_neither_empty_nor_cut_off() -> None:
    made, requests, _ = run_turns("", " ", "42")
    assert made.answer == "42" and len(requests) == 3
    assert [one.reason for one in made.corrections] == ["an answer is not empty"] * 2

    class Cut(ScriptedLLM):
        def answer(self, question):  # type: ignore[no-untyped-def]
            if isinstance(question, TextRequest) and question.max_tokens < self.needs:
                return Answer((), text="4", usage=TokenUsage(1, 0, question.max_tokens), stopped=CUT_OFF)
            return super().answer(question)

    Cut.needs = 4096
    run = Agent("react", Cut(texts=["42"], can=TURNS), TOOLS).start("q")
    assert run.run_to_end().answer == "42" and run.transcript.usage.requests == 3
    assert run.transcript.usage.output_tokens > 3000
    Cut.needs = 10**6
    with pytest.raises(WritingError, match="cut off at the limit of tokens, 4096 tokens; give it more"):
        Agent("react", Cut(texts=["42"], can=TURNS), TOOLS).run("q")


@pytest.mark.parametrize("stopped", [REFUSED, FILTERED])
def test_a_refusal_is_an_error_with_its_usage(stopped: str) -> None:
    class Refuses(FunctionLLM):
        def answer(self, question):  # type: ignore[no-untyped-def]
            return Answer((), text="I cannot.", usage=TokenUsage(1, 9, 3), stopped=stopped)

    run = Agent("react", Refuses(str, can=TURNS), TOOLS).start("q")
    with pytest.raises(WritingError, match=stopped):
        run.run_to_end()
    assert (run.transcript.usage.requests, run.transcript.usage.input_tokens) == (1, 9)


def test_texts_are_streamed_and_awaited() -> None:
    seen: list[object] = []
    turns = [("I add.", [("add", {"a": 2, "b": 3})]), "It is five."]
    agent = Agent("react", ScriptedLLM(texts=turns, can=TURNS, piece=4), TOOLS, streaming=True, on_event=seen.append)
    made = asyncio.run(agent.arun("q"))
    assert made.answer == "It is five."
    pieces = [one.text for one in seen if isinstance(one, Wrote) and one.state == "Ans"]
    assert pieces == ["I ad", "d.", "It i", "s fi", "ve."]  # the first two could have been an answer
    withdrawn = [one.state for one in seen if isinstance(one, Withdrawn)]
    assert withdrawn == ["Ans", "Final-Tht"]
    states = [one.state for one in seen if isinstance(one, Began)]
    assert [state for state in states if state in made.word][-2:] == ["Final-Tht", "Ans"]


def test_a_turn_whose_stream_breaks_off_is_taken_again() -> None:
    class Drops(ScriptedLLM):
        dropped = False

        def stream(self, request):  # type: ignore[no-untyped-def]
            for place, piece in enumerate(super().stream(request)):
                if place == 2 and not self.dropped:
                    self.dropped = True
                    raise ProviderError("the stream broke off")
                yield piece

    run = Agent("react", Drops(texts=["It is five.", "It is five."], can=TURNS), TOOLS, streaming=True).start("q")
    made = run.run_to_end()
    assert made.answer == "It is five." and (made.usage.requests, made.usage.estimated) == (2, 1)


def test_a_model_that_calls_no_tools_and_behaviours_without_calls() -> None:
    with pytest.raises(WritesNoText):
        NativeWriter(RandomLLM(), Behaviour.load("react"), states=ToolStates("Act", "Act-Inp"), tools=[])
    with pytest.raises(ToolkitError, match="has no states for an action"):
        Agent("direct", ScriptedLLM(texts=[], can=TURNS), native=True)
    assert not Agent("direct", ScriptedLLM(texts=["[Answer] a"], can=TURNS), TOOLS).native
    assert not Agent("react", ScriptedLLM(texts=[], can=TURNS), TOOLS, native=False).native
    assert Agent("react", ScriptedLLM(texts=[], can=TURNS), TOOLS).native

    # As a server of one's own, of which nobody knows whether its model calls tools.
    both = ScriptedLLM(texts=[], can=TURNS | TEXTS)
    assert not Agent("react", both, TOOLS).native and Agent("react", both, TOOLS, native=True).native
