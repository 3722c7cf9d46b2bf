"""Masks by our own automata, against all the texts of small languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG
from formal_llm.agents.decoding.automaton_masks import AutomatonMasks
from formal_llm.agents.decoding.masks import list_mask_tokens
from formal_llm.agents.decoding.plan_texts import PlanTexts, TextState
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.errors import ModelError, NoValidPlan, Undecided
from tests.agents.decoding.spelling import (
    END,
    SPECIAL,
    bounded_grammars,
    labels,
    legal_tokens,
    plans_of,
    separators,
    vocabularies,
    written,
)
from tests.strategies import examples

BYTES = TokenVocabulary([b"", *(bytes([byte]) for byte in range(256)), b"wash", b"h\nd", b"ry\n", b"sh hot\nw"], [0])
HOUSEWORK = CFG.from_string("""
S -> wash S | wash_hot S | dry
%limit 1
""")


def follow(matcher, vocabulary, texts, choices):
    """Write at random, and compare each mask with what the texts say."""
    so_far = b""
    for choice in choices:
        allowed = list_mask_tokens(matcher.mask())
        assert set(allowed) == legal_tokens(vocabulary, texts, so_far)
        assert matcher.may_stop() == (so_far in texts) == (END in allowed)
        assert allowed
        token = allowed[choice % len(allowed)]
        for wrong in {SPECIAL, vocabulary.size - 1, vocabulary.size + 5, -1, *range(len(vocabulary.pieces))} - set(
            allowed
        ):
            assert not matcher.accept(wrong)
        assert matcher.accept(token)
        if token == END:
            assert matcher.stopped
            assert list_mask_tokens(matcher.mask()) == [END]
            break
        so_far += vocabulary.pieces[token]
    return so_far


class TestAgainstAllTexts:
    @given(
        bounded_grammars(),
        st.lists(labels, min_size=5, max_size=5),
        separators,
        st.tuples(st.text("x ", max_size=2), st.text("y ", max_size=2)),
        vocabularies(),
        st.lists(st.integers(0, 99), max_size=14),
    )
    @examples(150)
    def test_random_languages(self, cfg, names, separator, around, vocabulary, choices):
        texts = dict(zip(cfg.terminals, names * 2, strict=False))
        words = plans_of(cfg)
        settings = {"separator": separator, "begin": around[0], "end": around[1], "texts": texts}
        if not words:
            with pytest.raises(NoValidPlan):
                PlanTexts(cfg, **settings)
            return
        plans = PlanTexts(cfg, **settings)
        matcher = AutomatonMasks(vocabulary).compile(plans)
        so_far = follow(matcher, vocabulary, written(plans, words), choices)
        if matcher.stopped:
            word = plans.read_word(so_far)
            assert word in words
            assert plans.write_word(word).encode() == so_far

    @given(bounded_grammars(), vocabularies(), st.lists(st.integers(0, 99), max_size=10), st.integers(0, 9))
    @examples(40)
    def test_ways_back(self, cfg, vocabulary, choices, back):
        words = plans_of(cfg)
        if not words:
            return
        texts = {name: "x" * (number + 1) for number, name in enumerate(cfg.terminals)}
        matcher = AutomatonMasks(vocabulary).compile(PlanTexts(cfg, texts=texts, separator=","))
        seen = [matcher.mask().tobytes()]
        for choice in choices:
            allowed = list_mask_tokens(matcher.mask())
            matcher.accept(allowed[choice % len(allowed)])
            if matcher.stopped:
                break
            seen.append(matcher.mask().tobytes())
        taken = len(seen) - 1 + matcher.stopped
        twin = matcher.fork()
        back = min(back, taken)
        matcher.rollback(back)
        assert matcher.mask().tobytes() == (seen[taken - back] if back else twin.mask().tobytes())
        assert twin.stopped or twin.mask().tobytes() == seen[-1]
        twin.reset()
        assert twin.mask().tobytes() == seen[0]
        assert not twin.stopped
        with pytest.raises(ValueError, match="taken back"):
            twin.rollback(1)


class TestMasks:
    def test_tokens_span_labels(self):
        plans = PlanTexts(HOUSEWORK)
        matcher = AutomatonMasks(BYTES).compile(plans)
        for token in (257, 260):  # "wash", "sh hot\nw": no label goes on so
            assert (token in list_mask_tokens(matcher.mask())) == (token == 257)
        assert matcher.accept(257)
        # "\n" ends wash, " " goes on as "wash hot"; nothing else is legal, and the plan is not whole
        assert list_mask_tokens(matcher.mask()) == [1 + ord("\n"), 1 + ord(" ")]
        assert not matcher.may_stop()
        matcher.rollback(1)
        assert matcher.accept(1 + ord("w"))
        assert matcher.accept(1 + ord("a"))
        assert list_mask_tokens(matcher.mask()) == [1 + ord("s"), 260]
        assert matcher.accept(260)
        # "wash hot" is used up: what follows "w" is "wash" itself, of which "wash hot" is no longer the end
        for byte in b"ash":
            assert matcher.accept(1 + byte)
        assert list_mask_tokens(matcher.mask()) == [1 + ord("\n")]

    def test_a_sum_is_kept(self):
        cfg = CFG.from_string("S -> hotel S | hostel S | end\nhotel cost=3\nhostel cost=2\n%limit cost <= 4")
        matcher = AutomatonMasks(BYTES).compile(PlanTexts(cfg, separator=","))
        for byte in b"hotel,":
            assert matcher.accept(1 + byte)
        assert list_mask_tokens(matcher.mask()) == [1 + ord("e")]

    def test_left_recursion(self):
        cfg = CFG.from_string("S -> S a | S b | c")
        matcher = AutomatonMasks(BYTES).compile(PlanTexts(cfg, separator=""))
        for byte in b"cabba":
            assert matcher.accept(1 + byte)
        assert list_mask_tokens(matcher.mask()) == [0, 1 + ord("a"), 1 + ord("b")]

    def test_what_cannot_be_spelled(self):
        engine = AutomatonMasks(TokenVocabulary([b"", b"a", b"b"], [0]))
        with pytest.raises(ModelError, match=r"cannot spell '\\nc'"):
            engine.compile(PlanTexts(CFG.from_string("S -> a S | c")))

    def test_what_is_left_out_for_lack_of_states_is_no_dead_end(self, monkeypatch):
        plans = PlanTexts(CFG.from_string("S -> a S | b"))
        monkeypatch.setattr(TextState, "complete", False)
        monkeypatch.setattr(TextState, "possible_bytes", frozenset())
        with pytest.raises(Undecided):
            AutomatonMasks(BYTES).compile(plans).mask()
