"""The writer that goes on, with models as they are: one that runs here, servers, recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import Behaviour
from formal_llm.agents import Markers, Monitor, Segment, Transcript
from formal_llm.agents.decoding.chatting import ChattingWriter
from formal_llm.agents.decoding.contents import OneOf
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.writer import Bounds, Writer
from formal_llm.errors import NotRecorded, WritesNoText
from formal_llm.llms import HostedLLM, RecordedLLM
from formal_llm.llms.doubles import TEXTS, RandomLLM, ScriptedLLM
from tests.agents.decoding.runs import run
from tests.llms.hosted.wire_server import Reply, WireServer, events

REACT = Behaviour.load("react-5")
MARKERS = Markers.of(REACT)
ASKED = Transcript("react-5", (Segment("question", "How?", "user"),))
BEHIND = Monitor(REACT).after("question")
WORLD = {"observation": "[Answer] 1"}
WORDS = [*MARKERS.states, "[Tho", "so ", "\n"]


def test_a_tiny_model_that_runs_here() -> None:
    from formal_llm.llms.local.model import TransformersLLM
    from tests import tiny_models

    llm = TransformersLLM.of(tiny_models.causal("gpt2", tiny_models.VOCABULARY), tiny_models.tokenizer())
    for streaming in (False, True):
        bounds = Bounds(state_tokens=8, chunk_tokens=8)
        writer = ContinuingWriter(llm, REACT, bounds=bounds, streaming=streaming)
        made = run(writer, BEHIND, ASKED, world=WORLD, markers=MARKERS)
        assert made.verify(REACT)
        assert made.corrections


def test_a_server_that_continues_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def stream(text: str) -> Reply:
        choice = {"index": 0, "text": text, "finish_reason": "stop"}
        part = {"id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
        return events({**part, "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}})

    said = ["Thought] a [Answer] b", " Search [Action Input] c [Observation] 9", "Final Thought] d", " e"]
    with WireServer(*map(stream, said)) as server:
        llm = HostedLLM("llamacpp:tiny", base_url=f"{server.root}/v1", max_retries=0)
        made = run(ContinuingWriter(llm, REACT), BEHIND, ASKED, world=WORLD, markers=MARKERS)
    assert made.word == (
        "question", "thought", "action", "action-input", "observation", "final-thought", "answer",
    )  # fmt: skip
    assert [(one.position, one.written, one.done) for one in made.corrections] == [
        (2, "[Answer]", "[Action]"), (6, "", "[Answer]"),
    ]  # fmt: skip
    assert made.text_of("observation") == "[Answer] 1"
    assert {asked.path for asked in server.asked} == {"/v1/completions"}
    assert made.usage.requests == 4
    assert made.usage.output_tokens == 28


def test_where_only_one_text_is_left_no_request_is_made() -> None:
    """Neither for the rest of the text nor for the marker behind it, which is the only one."""
    llm = ScriptedLLM(texts=["Thought] a [Action] Look", " it", "Final Thought] b [Answer] c"])
    contents = {"action": OneOf("Search", "Lookup")}
    made = run(ContinuingWriter(llm, REACT), BEHIND, ASKED, world=WORLD, contents=contents, markers=MARKERS)
    assert (made.text_of("action"), made.text_of("action-input"), made.answer) == ("Lookup", "it", "c")
    assert len(llm.requests) == 3
    assert llm.requests[1].prompt.endswith("[Action] Lookup\n[Action Input]")


@pytest.mark.parametrize("kind", [ContinuingWriter, ChattingWriter])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_awaited_it_is_the_same(kind: type, streaming: bool, seed: int) -> None:
    runs = [
        run(
            kind(RandomLLM(seed, can=TEXTS, words=WORDS), REACT, streaming=streaming), BEHIND, ASKED,
            world=WORLD, markers=MARKERS, awaited=awaited,
        )
        for awaited in (False, True)
    ]  # fmt: skip
    assert runs[0] == runs[1] and len(runs[0]) > 2


@pytest.mark.parametrize("kind", [ContinuingWriter, ChattingWriter])
@pytest.mark.parametrize("seed", range(5))
def test_a_run_is_made_again_from_its_recording(kind: type, seed: int, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    with RecordedLLM(RandomLLM(seed, can=TEXTS, words=WORDS), file, again=True) as recording:
        writer = kind(recording, REACT)
        assert isinstance(writer, Writer)
        made = run(writer, BEHIND, ASKED, world=WORLD, markers=MARKERS)
    replay = RecordedLLM(None, file)
    again = run(kind(replay, REACT), BEHIND, ASKED, world=WORLD, markers=MARKERS)
    assert again == made
    assert replay.left == 0
    with pytest.raises(NotRecorded):
        run(kind(replay, REACT), BEHIND, ASKED, world=WORLD, markers=MARKERS)


def test_who_does_not_go_on_with_a_text() -> None:
    with pytest.raises(WritesNoText):
        ContinuingWriter(RandomLLM(), REACT)  # type: ignore[arg-type]
