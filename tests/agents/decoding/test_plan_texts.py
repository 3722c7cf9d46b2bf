import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead, Verdict
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.errors import AutomatonError, Undecided
from tests.agents.decoding.spelling import bounded_grammars, labels, plans_of, separators, written
from tests.automata.lookahead.judging import Plain
from tests.strategies import examples


def legal_bytes(state):
    return {byte for byte in range(256) if state.follow_byte(byte) is not None}


class TestTexts:
    @given(bounded_grammars(), st.lists(labels, min_size=6, max_size=6), separators, st.binary(max_size=4))
    @examples(60)
    def test_reading(self, cfg, names, separator, cut):
        words = plans_of(cfg)
        if not words:
            return
        texts = PlanTexts(cfg, separator=separator, texts=dict(zip(cfg.terminals, names * 2, strict=False)))
        legal = written(texts, words)
        for text in sorted(legal)[:5]:
            found = texts.read_word(text)
            assert found in words
            assert texts.write_word(found).encode() == text
            wrong = text[: len(cut)] + cut
            assert (texts.read_word(wrong) is not None) == (wrong in legal)

    @given(bounded_grammars(), st.lists(labels, min_size=6, max_size=6), separators, st.integers(0, 20))
    @examples(60)
    def test_finishing(self, cfg, names, separator, cut):
        words = plans_of(cfg)
        if not words:
            return
        texts = PlanTexts(cfg, separator=separator, texts=dict(zip(cfg.terminals, names * 2, strict=False)), end=".")
        legal = written(texts, words)
        begun = sorted(legal)[cut % len(legal)][:cut]
        state = texts.start.follow_text(begun)
        whole = begun + texts.finish_text(state)
        assert whole in legal
        fewest = min(len(word) for word in words if texts.write_word(word).encode().startswith(begun))
        assert len(texts.read_word(whole)) == fewest

    def test_one_state_for_what_goes_on_alike(self):
        texts = PlanTexts(CFG.from_string('S -> a S | b S | c\na "wash"\nb "dry"'))
        assert texts.start.follow_text(b"wash\n") is texts.start.follow_text(b"dry\nwash\n")
        assert texts.start.follow_text(b"x") is None

    def test_a_plan_without_a_step(self):
        texts = PlanTexts(CFG.from_string("S -> a | ε"), begin="[", end="]")
        assert texts.read_word("[]") == ()
        assert texts.write_word(("a",)) == "[a]"
        assert PlanTexts(CFG.from_string("S -> a | ε")).start.may_stop

    def test_what_follows_a_terminal_is_found_where_it_is_asked_for(self):
        texts = PlanTexts(CFG.from_string('S -> a S | b S | c\n%limit 1\na "1"\nb "12"'))
        assert texts.start.follow_text(b"12") is not None
        assert "readings" not in vars(texts.start.follow_text(b"1"))
        assert legal_bytes(texts.start.follow_text(b"1")) == set(b"2\n")

    def test_texts_that_cannot_be(self):
        cfg = CFG.from_string("S -> a S | b")
        with pytest.raises(AutomatonError, match="no terminal: washing"):
            PlanTexts(cfg, texts={"washing": "x"})
        with pytest.raises(AutomatonError, match="the terminal a has no text"):
            PlanTexts(cfg, texts={"a": ""}, separator="")

    def test_an_automaton_of_ones_own(self):
        texts = PlanTexts(Plain(), separator="")
        assert texts.read_word("abab") == ("a", "b", "a", "b")
        assert legal_bytes(texts.start.follow_text(b"ab")) == set(b"ab")
        assert texts.finish_text(texts.start.follow_text(b"bab")) == b"a"

    def test_what_is_not_decided_is_left_out_and_told(self, monkeypatch):
        completable = Lookahead.completable

        def judged(self, configuration=None):
            # Once b is used up, nothing is found out any more.
            if configuration is not None and configuration.remaining != self.automaton.start().remaining:
                return Verdict("unknown", "state budget")
            return completable(self, configuration)

        monkeypatch.setattr(Lookahead, "completable", judged)
        monkeypatch.setattr(Lookahead, "top", lambda *_: None)  # each move is judged by itself
        start = PlanTexts(CFG.from_string("S -> a S | b S | c\n%limit 1 b")).start
        assert (legal_bytes(start), start.complete) == (set(b"ac"), False)
        monkeypatch.setattr(Lookahead, "completable", lambda self, now=None: Verdict("unknown", "state budget"))
        with pytest.raises(Undecided, match="raise max_states"):
            PlanTexts(CFG.from_string("S -> a S | b"))
