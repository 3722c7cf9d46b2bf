"""Grammars as text: there and back, and what is said of every slip."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Production, SumLimit, Symbol
from formal_llm.errors import GrammarError
from tests.automata.grammar_errors import check, refuse
from tests.automata.messages import from_caret, quiet
from tests.oracles import Reference
from tests.strategies import examples, texts, written_grammars


def read(text, **more):
    with quiet():
        return CFG.from_string(text, **more)


class TestRoundTrip:
    @given(written_grammars())
    @examples(150)
    def test_random_grammars(self, cfg):
        assume(not Reference(PDA.from_cfg(cfg), cfg.limits).empty)
        again = read(str(cfg))
        assert again == cfg
        assert (again.start, again.productions, dict(again.symbols)) == (cfg.start, cfg.productions, dict(cfg.symbols))
        assert (again.limits, again.order) == (cfg.limits, cfg.order)
        assert str(again) == str(cfg)

    @given(texts, texts, texts)
    @example('"', "\\", "\\n")
    @example("\\\\n", "\n\r\r\n\t", "# | -> %limit")
    @example("", "only a description", "")
    def test_any_text(self, label, description, step):
        symbols = {"a": Symbol(label, description), "S": Symbol(description, label)}
        cfg = CFG([Production("S", ("a",), step)], symbols=symbols)
        assert read(str(cfg)) == cfg

    @pytest.mark.parametrize(
        "name", ["some", "something", "any", "εa", "aε", "-", ">", "a-", "*", "7", "é漢", "a:b", "<"]
    )
    def test_any_name_that_a_grammar_takes(self, name):
        for cfg in (
            CFG([("S", (name,)), ("S", (name, "b"))], limits=Limits({name: 2})),
            CFG([("S", ("b", name)), (name, ("b",))], symbols={name: Symbol("label")}),
            CFG([(name, ("b",)), (name, ())]),
        ):
            assert read(str(cfg)) == cfg

    @pytest.mark.parametrize("value", [0, 7, 0.1, 2.5, 1e-7, 1e16, 123456.789, 2**53 + 1, 10**30])
    def test_numbers(self, value):
        symbols = {"a": Symbol(numbers={"cost": value})}
        limits = Limits(sums=(SumLimit("cost", at_most=value),))
        cfg = CFG([("S", ("a",))], symbols=symbols, limits=limits)
        assert read(str(cfg)) == cfg

    def test_rules_of_one_head_in_several_places_keep_their_order(self):
        cfg = CFG(
            [("S", ("A", "B")), ("A", ("a",)), ("B", ("b",)), ("A", ("c",)), ("S", ())],
            start="A",
            symbols={"A": Symbol("the A")},
        )
        assert read(str(cfg)) == cfg

    def test_printed_form(self):
        cfg = CFG(
            [
                Production("S", ("boil", "A"), "boil it"),
                Production("S", ()),
                Production("A", ("some(salt, oil)",)),
            ],
            symbols={"salt": Symbol("Salt", "a pinch", {"g": 2}), "S": Symbol("Supper")},
            limits=Limits({"boil": None, "oil": 2}, {"oil": 1}, 1, (SumLimit("g", 5), SumLimit("g", at_least=1))),
        )
        assert str(cfg).splitlines() == [
            "%start S",
            "%limit 1",
            "%limit * boil",
            "%limit 2 oil",
            "%require 1 oil",
            "%limit 1 <= g <= 5",
            "",
            'S "Supper" -> boil A "boil it" | ε',
            "A -> some(salt, oil)",
            "",
            'salt "Salt" "a pinch" g=2',
        ]
        assert read(str(cfg)) == cfg


class TestReading:
    PLAIN = CFG([("S", ("a", "S")), ("S", ("b",)), ("S", ())])

    @pytest.mark.parametrize(
        "text",
        [
            "S -> a S | b | ε",
            "S → a S | b | %empty",
            "S ::= a S | b | ε\n",
            "S->a S|b|ε",
            "S -> a S\nS -> b\nS -> ε",
            "S -> a S\n  | b\n  | ε\n",
            "S -> a S # one\n# a comment between\n\n\t| b   # two\n\n | ε",
            "\n\n  # only a comment\n\nS\t->\ta S | b | ε   \n\n",
            "\ufeffS -> a S | b | ε",
            "S -> a S\r\n| b\r\n| ε\r\n",
            "S -> a S\r| b\r| ε\r",
            "\ufeff# c\r\n\r\n%start S\r\nS -> a S | b | ε # c",
            "S -> a S |\tb | ε\n#",
            "S -> a S | b | ε | a S",
            "%limit *\nS -> a S | b | ε",
            "%require 0 a\nS -> a S | b | ε",
        ],
    )
    def test_layouts_of_one_grammar(self, text):
        assert CFG.from_string(text) == self.PLAIN

    def test_everything_at_once(self):
        cfg = CFG.from_string(
            [
                "\n            %start Meal\n            %limit 2                  # every terminal\n            ",
                " * milk        # refused: two words and no number at an end\n            ",
            ][0]
            + """
            %order forward
            %limit * salt pepper
            %limit cut 3
            %require 1 cut
            %limit minutes <= 30.5
            %limit minutes >= 5
            Meal "a \\"good\\" meal" "from scratch" -> cut Cook "Cut, then cook." | some(salt, pepper) Meal
            Cook -> boil "Boil\\n\\tit" | ε "Leave it"
            cut "Cut" minutes=5 calls=1
            boil minutes=2.5
            """
        )
        assert (cfg.start, cfg.order) == ("Meal", "forward")
        assert cfg.productions == (
            Production("Meal", ("cut", "Cook"), "Cut, then cook."),
            Production("Meal", ("some(salt, pepper)", "Meal")),
            Production("Cook", ("boil",), "Boil\n\tit"),
            Production("Cook", (), "Leave it"),
        )
        assert dict(cfg.symbols) == {
            "Meal": Symbol('a "good" meal', "from scratch"),
            "cut": Symbol("Cut", "", {"minutes": 5, "calls": 1}),
            "boil": Symbol("", "", {"minutes": 2.5}),
        }
        assert cfg.limits == Limits(
            {"salt": None, "pepper": None, "cut": 3}, {"cut": 1}, 2, (SumLimit("minutes", 30.5, 5),)
        )

    def test_numbers_of_one_terminal_on_several_lines_add_up(self):
        cfg = CFG.from_string('S -> a\na cost=1\na "A" time=2\na kg=0.5')
        assert dict(cfg.symbols) == {"a": Symbol("A", "", {"cost": 1, "time": 2, "kg": 0.5})}

    def test_the_same_thing_said_twice_is_fine(self):
        text = '%limit 1 a\n%limit 1 a\n%require 1 a\n%require 1 a\n%limit 3\n%limit 3\nS -> a\na "A"\na "A"'
        assert CFG.from_string(text).limits == Limits({"a": 1}, {"a": 1}, 3)

    def test_file(self, tmp_path):
        path = tmp_path / "a grammar.cfg"
        path.write_bytes("\ufeffS → a “quoted”\r\n".encode())
        assert CFG.from_file(path) == CFG([("S", ("a", "“quoted”"))])
        assert CFG.from_file(str(path)) == CFG.from_file(path)


#: text, line, column, what the caret points to, a part of the problem, a part of the suggestion.
ERRORS = [
    ("%start X\nSentence -> a", 1, 8, "X", "unknown start symbol: X", "it needs a rule"),
    ("%start Sentense\nSentence -> a", 1, 8, "Sentense", "did you mean Sentence?", "it needs a rule"),
    ("%start S\n%start T\nS -> T\nT -> a", 2, 8, "T", "a second start symbol; the first was S", None),
    ("%order forwards\nS -> a", 1, 8, "forwards", "(did you mean forward?)", "write %order backward, or"),
    ("%order backward\n%order forward\nS -> a", 2, 8, "forward", "a second order; the first was backward", None),
    ("%limit 1 colour\nS -> color", 1, 10, "colour", "unknown symbol in a limit: colour (did you mean color?)", None),
    ("%require 1 zzz\nS -> a", 1, 12, "zzz", "unknown symbol in a limit: zzz", None),
    ("%limit 1 a A\nS -> a A\nA -> b", 1, 12, "A", "A is a nonterminal; limits count terminals", None),
    ("%limit a\nS -> a", 1, 8, "a", "the limit has no number", "write: %limit 1 a"),
    ("%limit -1 a\nS -> a", 1, 8, "-1 a", "-1 is no number of uses", "whole numbers, from 0"),
    ("%limit 1.5 a\nS -> a", 1, 8, "1.5 a", "1.5 is no number of uses", "whole numbers, from 0"),
    ("%limit 1 a\n%limit 2 a\nS -> a", 2, 10, "a", "a second %limit for a; the first was 1", None),
    ("%limit 1\n%limit 2\nS -> a", 2, 8, "2", "a second %limit without names; the first was 1", None),
    ("%require 1\nS -> a", 1, 10, "1", "needs the names of terminals", "%require 1 NAME"),
    ("%require * a\nS -> a", 1, 10, "* a", "the limit has no number", None),
    ("%require 1 a\n%require 2 a\nS -> a", 2, 12, "a", "a second %require for a", None),
    ("%limit cost <= 5\nS -> a", 1, 8, "cost <= 5", "unknown quantity: cost", "no terminal carries it"),
    ("%limit cots <= 5\nS -> a\na cost=1", 1, 8, "cots <= 5", "(did you mean cost?)", "no terminal carries it"),
    ("%limit cost <= much\nS -> a\na cost=1", 1, 16, "much", "'much' is not a number", None),
    (
        "%limit cost < 5\nS -> a\na cost=1",
        1,
        13,
        "< 5",
        "unexpected '<'",
        "write %limit cost <= 5, which allows that amount too",
    ),
    ("S -> a\na cost=-1", 2, 8, "-1", "not a number from 0", None),
    ("S -> a\na cost=nan", 2, 8, "nan", "not a number from 0", None),
    ("S -> a\na cost=inf", 2, 8, "inf", "not a number from 0", None),
    ("S -> a\na cost=1 cost=2", 2, 10, "cost=2", "a has two numbers for cost", None),
    ("S cost=1\nS -> a", 1, 1, "S cost=1", "S is a nonterminal; only terminals carry numbers", None),
    ('S -> a\na "one"\na "two"', 3, 1, 'a "two"', "a has two labels: 'one' and 'two'", None),
    ('S -> a\nab "label"', 2, 1, 'ab "label"', "unknown symbol: ab", None),
    ('S -> colour\ncolor "Color"', 2, 1, 'color "Color"', "(did you mean colour?)", None),
    ("S -> a ε b", 1, 8, "ε b", "cannot be the name of a symbol", None),
    ("S -> A\nA -> A a", 1, 1, "S -> A", "no word can be derived from S, A", "give it a rule that ends"),
]


class TestErrors:
    @pytest.mark.parametrize(("text", "line", "column", "pointed", "problem", "suggestion"), ERRORS)
    def test_place_problem_and_way_out(self, text, line, column, pointed, problem, suggestion):
        check(refuse(text), text, line, column, pointed, problem, suggestion)

    @pytest.mark.parametrize("text", ["%start S", "%limit 1", 'a "A"', "a cost=1"])
    def test_no_rule(self, text):
        assert refuse(text).problem == "the grammar has no rule"

    @pytest.mark.parametrize("name", ["some(a, a)", "some(a, S)"])
    def test_selections_that_make_no_sense(self, name):
        error = refuse(f"S -> a\n  | {name}")
        assert name in error.problem
        assert error.line == 2

    def test_a_number_too_long_to_count(self):
        assert refuse(f"%limit {'9' * 5000} a\nS -> a").line == 1

    def test_file_is_named(self, tmp_path):
        path = tmp_path / "broken.cfg"
        path.write_text("S -> a\nT b", encoding="utf-8")
        with pytest.raises(GrammarError) as caught:
            CFG.from_file(path)
        assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), 2, 3)
        assert str(caught.value).startswith(f"{path}:2:3: ")


class TestGarbage:
    """Whatever is read, a grammar or a GrammarError comes out."""

    #: One grammar with every construct, to be damaged.
    WHOLE = (
        '%start S\n%limit 2 a\n%limit *\n%require 1 a\n%limit cost <= 5\nS "x" "y" -> a S "t" | some(a, b) | ε # c\n'
        '  | a\nT ::= a\na "A\\n" cost=1.5\nb cost=2 h=3\n'
    )
    PIECES = ("->", "→", "::=", "|", "some(", ")", ",", '"', "\\", "#", "%", "%limit", "ε", "=", "<=", "\n", "\t", " ",
              "\x00", "\u2028", "\x85", "\x0b", "9" * 30, "a", "S", "é", "\ufeff", "\r")  # fmt: skip

    def check(self, text):
        try:
            cfg = read(text)
        except GrammarError as error:
            assert str(error)
            if error.column is not None:
                from_caret(error)
                assert 1 <= error.column <= len(error.source_line) + 1
            return
        assert read(str(cfg)) == cfg

    @given(st.text(max_size=40))
    @examples(150)
    def test_any_text(self, text):
        self.check(text)

    @given(st.lists(st.sampled_from(PIECES), max_size=14))
    @examples(200)
    def test_pieces_of_the_notation(self, pieces):
        self.check("".join(pieces))

    @given(st.data())
    @examples(200)
    def test_damaged_grammars(self, data):
        text = self.WHOLE
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(text)))
            cut = data.draw(st.sampled_from([0, 0, 1, 2, 8]))
            text = text[:at] + data.draw(st.sampled_from(["", *self.PIECES])) + text[at + cut :]
        self.check(text)


def test_repetitions_and_groups_are_written_as_they_were_read() -> None:
    text = '%start S\n%order forward\n\nS -> a* (b | c d){1,3} E? | ε\nE -> (a b)+ "text"\n\na "label" minutes=5\n'
    assert str(CFG.from_string(text)) == text


def test_they_are_written_in_one_way() -> None:
    text = "%order forward\nS -> a{0,} a{1,} a{,1} a{,2} ( a b )* b{1}"
    assert "S -> a* a+ a? a{0,2} (a b)* b" in str(CFG.from_string(text))


def test_the_worlds_moves_are_read_and_written() -> None:
    text = "%start S\n%order forward\n%world W V\n\nS -> a W V\nW -> b | c\nV -> d\n"
    cfg = CFG.from_string(text)
    assert cfg.world == {"W", "V"}
    assert CFG.from_string(str(cfg)) == cfg
    assert str(cfg) == text
    assert cfg != CFG.from_string(text.replace("%world W V", "%world W"))
    assert cfg.with_start("W").world == cfg.with_limits(Limits({"a": 1})).world == cfg.world
    assert PDA.from_cfg(cfg).with_limits(Limits({"a": 1})).has_world_moves
