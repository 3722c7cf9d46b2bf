"""Whole runs of an agent: each text that masks allow is a run that the monitor allows."""

import random

import pytest

from formal_llm import Behaviour, Limits
from formal_llm.agents.decoding.agent_masks import AgentMasks
from formal_llm.agents.decoding.contents import FreeText, OneOf, Regex
from formal_llm.agents.decoding.masked_logits import MaskedLogits
from formal_llm.agents.decoding.masks import list_mask_tokens
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.agents.decoding.xgrammar_masks import XGrammarMasks
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.errors import AutomatonError
from tests import tiny_models

pytest.importorskip("xgrammar", reason="xgrammar is not installed: pip install 'formal-llm[xgrammar]'")

AGENT = Behaviour.from_string("""(define react
  (:states (Thought (:text "[Thought]")) (Action (:text "[Action]")) (Result (:text "[Result]"))
           (Answer (:text "[Answer]")))
  (:behavior (next (until (next Thought Action Result) Thought) Answer)))""")
MARKERS = Markers.of(AGENT)
LONGER = [b"[Thought]", b"[Act", b"ion]", b"[An", b"swer]", b"[Action] a", b"]x", b"yes[Res", b"ult]"]
BYTES = TokenVocabulary([b"", *(bytes([byte]) for byte in range(32, 127)), *LONGER], [0])
CONTENTS = {"Action": OneOf(" yes", " no"), "Answer": Regex(" [0-9]{1,3}"), "Thought": FreeText(max_tokens=6)}


def engine(vocabulary=BYTES, **more):
    return AgentMasks(XGrammarMasks(vocabulary), MARKERS, CONTENTS, **more)


def run(matcher, rng, most=200):
    tokens = []
    while not matcher.stopped and len(tokens) < most:
        allowed = list_mask_tokens(matcher.mask())
        assert allowed
        longer = [token for token in allowed if token > 95]
        tokens.append(rng.choice(longer if longer and rng.random() < 0.5 else allowed))
        assert matcher.accept(tokens[-1])
    return tokens


def check(text, monitor):
    pieces = MARKERS.split(text)
    assert pieces[0].marker is not None
    names = [MARKERS.states[piece.marker][0] for piece in pieces]
    assert monitor.verify(names, repair=False).valid
    for name, piece in zip(names, pieces, strict=True):
        if name == "Action":
            assert piece.text in (" yes", " no")
        if name == "Answer":
            assert piece.text.strip().isdigit()
    return names


def test_random_runs_are_runs_of_the_agent():
    monitor = Monitor(AGENT, limits=Limits(at_most={"Action": 2}))
    masked = engine()
    seen = set()
    for seed in range(40):
        matcher = masked.compile(monitor)
        tokens = run(matcher, random.Random(seed))
        if matcher.stopped:
            names = check(BYTES.decode_tokens(tokens).decode(), monitor)
            assert names.count("Action") <= 2
            assert matcher.monitor.word == tuple(names)
            seen.add(tuple(names))
    assert len(seen) > 1


def test_the_world_has_its_turn():
    monitor = Monitor(AGENT)
    matcher = engine(given=["Result"]).compile(monitor)
    for byte in b"[Thought] x[Action] no[Result]":
        assert matcher.waits_for is None
        assert matcher.accept(byte - 31)
    assert matcher.waits_for == "Result"
    assert matcher.may_stop()
    assert list_mask_tokens(matcher.mask()) == [0]
    assert not matcher.accept(5)
    assert matcher.accept(0)
    assert matcher.stopped
    after = engine().compile(matcher.monitor)
    assert {BYTES.pieces[token][:1] for token in list_mask_tokens(after.mask())} == {b"["}
    assert after.monitor.word == ("Thought", "Action", "Result")


def test_ways_back():
    matcher = engine(given=["Result"]).compile(Monitor(AGENT))
    seen = [matcher.mask().tobytes()]
    for byte in b"[Thought] x[Action] no[Result]":
        matcher.accept(byte - 31)
        seen.append(matcher.mask().tobytes())
    matcher.accept(0)
    twin = matcher.fork()
    twin.rollback(1)
    assert not twin.stopped
    for length in range(len(seen) - 1, 0, -7):
        assert twin.mask().tobytes() == seen[length]
        twin.rollback(min(7, length))
    assert matcher.stopped
    matcher.reset()
    assert matcher.mask().tobytes() == seen[0]
    with pytest.raises(ValueError, match="taken back"):
        matcher.rollback(1)


def test_a_state_without_a_marker():
    masked = AgentMasks(XGrammarMasks(BYTES), Markers({"Thought": "", "Answer": "[Answer]"}))
    with pytest.raises(AutomatonError, match="the state Thought has no marker"):
        masked.compile(Monitor(AGENT))


@pytest.mark.parametrize("beams", [1, 3])
def test_a_tiny_model_runs_the_agent(beams):
    import torch

    tokenizer = tiny_models.tokenizer()
    model = tiny_models.causal("llama")
    vocabulary = TokenVocabulary.from_tokenizer(tokenizer, tiny_models.VOCABULARY)
    monitor = Monitor(AGENT, limits=Limits(at_most={"Thought": 2}))
    contents = {**CONTENTS, "Result": OneOf(" done")}
    matcher = AgentMasks(XGrammarMasks(vocabulary), MARKERS, contents).compile(monitor)
    prompt = torch.tensor([tokenizer.encode("the task")])
    written = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        logits_processor=[MaskedLogits(matcher, beams=beams)],
        num_beams=beams,
        do_sample=False,
        max_new_tokens=120,
        pad_token_id=0,
    )
    tokens = written[0, prompt.shape[1] :].tolist()
    assert tokenizer.eos_token_id in tokens
    check(vocabulary.decode_tokens(tokens[: tokens.index(tokenizer.eos_token_id)]).decode(errors="replace"), monitor)
