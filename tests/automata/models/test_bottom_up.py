from hypothesis import given

from formal_llm import CFG
from formal_llm.automata.models import bottom_up
from formal_llm.automata.models.bottom_up import LRTables
from tests.oracles import all_words, alphabet, language
from tests.strategies import examples, grammars

EXPRESSIONS = CFG.from_string("E -> E p T | T\nT -> T m F | F\nF -> l E r | x")


def reader(cfg, symbol=None, follow=None):
    made = cfg.recognizer
    tables = LRTables(made.by_head, made.bits, made.first, made.nullable)
    return tables.get_reader(symbol or cfg.start, tables.end if follow is None else tables.bit_of(follow))


class TestBottomUp:
    @given(grammars())
    @examples(150)
    def test_what_it_tells_of_random_grammars_is_so(self, cfg):
        if cfg.recognizer.empty:
            return
        words = language(cfg, 5)
        read = reader(cfg).read_symbol
        for word in all_words(alphabet(cfg)[:3], 5):
            assert read(word, 0) in ((None, len(word)) if word in words else (None, -1)), word

    def test_left_recursion_is_read_without_a_chart(self):
        read = reader(EXPRESSIONS).read_symbol
        for word in all_words(alphabet(EXPRESSIONS), 5):
            assert read(word, 0) == (len(word) if EXPRESSIONS.accepts(word) else -1)
        assert read("x" + "px" * 20_000, 0) == 40_001

    def test_a_part_ends_where_what_follows_it_begins(self):
        assert reader(EXPRESSIONS, "T", "p").read_symbol("xpxmxpx", 2) == 5
        assert reader(EXPRESSIONS, "T", "r").read_symbol("xpxmxpx", 2) == -1

    def test_what_is_no_terminal_is_read_nowhere(self):
        for word in (["x", "p", "E"], ["x", "E"], ["E"], ["x", None], ["x", "", "x"]):
            assert reader(EXPRESSIONS).read_symbol(word, 0) == -1

    def test_what_fails_again_and_again_is_no_longer_tried(self):
        asked = []

        class Word(list):
            def __getitem__(self, at):
                asked.append(at)
                return "a"

        read = reader(CFG.from_string("S -> S S | a")).read_symbol
        for _ in range(200):
            assert read(Word("a" * 9), 0) is None
        assert len(asked) < 300

    def test_too_many_states(self, monkeypatch):
        monkeypatch.setattr(bottom_up, "_STATES", 3)
        assert reader(EXPRESSIONS).read_symbol("xpxmx", 0) is None
