import pytest
from hypothesis import given

from formal_llm import CFG, PDA
from formal_llm.automata.models import membership, tabulation
from formal_llm.automata.models.membership import LRTables
from tests.oracles import all_words, alphabet, language
from tests.strategies import automata, examples, grammars


class TestAccepts:
    @given(grammars())
    @examples(200)
    def test_random_grammars_agree_with_all_words_written_out(self, cfg):
        words = language(cfg, 5)
        for word in all_words(alphabet(cfg)[:3], 5):
            assert cfg.recognizer.accepts(word) == (word in words), word

    @given(grammars())
    @examples(30)
    def test_random_grammars_agree_with_the_tabulation_of_the_automaton(self, cfg):
        pda = PDA.from_cfg(cfg)
        for word in all_words(alphabet(cfg)[:2], 6):
            assert pda.accepts(word) == cfg.accepts(word) == tabulation.accepts_by_tabulation(pda, word), word

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("S -> a S b | ε", "a" * 20_000 + "b" * 20_000),
            ("S -> a S b | a S c | d", "a" * 5_000 + "d" + "bc" * 2_500),  # two fit, at every step
            ("S -> a S | a", "a" * 20_000),
            ("S -> S a | a", "a" * 20_000),
            ("S -> A S | ε\nA -> B\nB -> a | a a a b", "a" * 9_999 + "b"),
            ("E -> E p T | T\nT -> T m F | F\nF -> l E r | x", "xpxmlxpxrp" * 1_000 + "x"),
            ("E -> E p T | T\nT -> l E r | x", "l" * 5_000 + "x" + "r" * 5_000),
        ],
    )
    def test_long_words(self, text, word):
        cfg = CFG.from_string(text)
        assert cfg.accepts(word)
        assert not cfg.accepts(word + "d")
        assert not cfg.accepts("c" + word)

    def test_dense_ambiguity(self):
        cfg = CFG.from_string("S -> S S | a")
        assert cfg.accepts("a" * 200)
        assert not cfg.accepts("a" * 100 + "b")
        assert not cfg.accepts("")

    def test_palindromes(self):
        cfg = CFG.from_string("S -> a S a | b S b | ε")
        assert cfg.accepts("abba" * 20)
        assert not cfg.accepts("abba" * 20 + "ab")

    def test_symbols_that_derive_nothing(self):
        cfg = CFG([("S", ("a",)), ("S", ("a", "T")), ("T", ("T", "a")), ("S", ("U",))])
        assert cfg.accepts(["a"])
        assert cfg.accepts(["U"])
        assert not cfg.accepts(["a", "a"])
        assert not CFG([("S", ("S", "a"))]).accepts([])
        assert not CFG([("S", ("S", "a"))]).accepts(["a"])

    def test_one_choice_is_read_with_the_stack_alone(self):
        # What a symbol does with a terminal is worked out down to the terminal.
        recognizer = CFG.from_string("S -> T S c | b\nT -> U\nU -> a").recognizer
        assert recognizer.accepts("aabcc")
        pushed = recognizer.get_row("S")["a"]
        assert pushed is not None
        assert [row.symbol for row in pushed] == ["c", "S"]

    def test_is_made_once_for_a_grammar(self):
        cfg = CFG.from_string("S -> a")
        assert cfg.recognizer is cfg.recognizer


class TestFirstAndFollow:
    @given(grammars(selections=False))
    @examples(60)
    def test_first_holds_what_words_begin_with(self, cfg):
        recognizer = cfg.recognizer
        for head in cfg.nonterminals:
            for word in language(cfg.with_start(head), 3):
                assert not word or recognizer.first[head] & recognizer.bits[word[0]]

    def test_sets_of_the_expression_grammar(self):
        # Aho, Lam, Sethi and Ullman, example 4.30.
        cfg = CFG.from_string("E -> T E2\nE2 -> + T E2 | ε\nT -> F T2\nT2 -> * F T2 | ε\nF -> l E r | id")
        recognizer = cfg.recognizer

        def names(bits):
            return {name for name, bit in recognizer.bits.items() if bits & bit}

        assert names(recognizer.first["E"]) == names(recognizer.first["F"]) == {"l", "id"}
        assert names(recognizer.first["T2"]) == {"*"}
        assert names(recognizer.follow["E2"]) == {"r"}
        assert names(recognizer.follow["T2"]) == {"+", "r"}
        assert names(recognizer.follow["F"]) == {"+", "*", "r"}
        assert recognizer.nullable == {"E2", "T2"}


class TestOfAutomata:
    @given(automata(letters=("a", "b")))
    @examples(40)
    def test_only_the_automaton_of_a_grammar_asks_the_grammar(self, pda):
        assert not pda.is_of_cfg
        cfg = CFG.from_string("S -> a")
        assert PDA.from_cfg(cfg).is_of_cfg
        other = PDA(
            pda.transitions, start=pda.start_state, accepting=pda.accepting_states, stack=pda.start_stack, cfg=cfg
        )
        for word in all_words("ab", 3):
            assert other.accepts(word) == pda.accepts(word)


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
        monkeypatch.setattr(membership, "_STATES", 3)
        assert reader(EXPRESSIONS).read_symbol("xpxmx", 0) is None
