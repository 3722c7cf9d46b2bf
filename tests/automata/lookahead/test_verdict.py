import pytest

from formal_llm import CFG, Lookahead, Verdict


class TestVerdict:
    def test_has_no_truth_value(self):
        with pytest.raises(TypeError, match="three values"):
            bool(Lookahead(CFG.from_string("S -> a")).completable())

    def test_possible_means_not_ruled_out(self):
        assert [Verdict(value, "search").possible for value in ("yes", "no", "unknown")] == [True, False, True]

    def test_text_tells_what_decided(self):
        lookahead = Lookahead(CFG.from_string("S -> a b"))
        assert str(lookahead.completable()) == "yes (filter)"
        assert str(lookahead.completable(steps=2)) == "no (step budget)"
