"""Grammars as text: syntax, bodies, meaning, letters and typed tools."""

from __future__ import annotations

import time
import warnings

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Production, SumLimit, Symbol, Toolkit, tool
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.languages.grammar_warnings import cfg_warnings
from formal_llm.errors import GrammarError, GrammarWarning
from formal_llm.packs.openagi.experts.settings import read_settings
from formal_llm.tools import Tool
from formal_llm.tools.kinds import kind_named
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


def test_repetitions_and_groups_are_written_as_they_were_read() -> None:
    text = '%start S\n%order prefix\n\nS -> a* (b | c d){1,3} E? | ε\nE -> (a b)+ "text"\n\na "label" minutes=5\n'
    assert str(CFG.from_string(text)) == text


def test_they_are_written_in_one_way() -> None:
    text = "%order forward\nS -> a{0,} a{1,} a{,1} a{,2} ( a b )* b{1}"
    assert "S -> a* a+ a? a{0,2} (a b)* b" in str(CFG.from_string(text))


@pytest.mark.parametrize("name", ["some", "something", "somebody", "εa"])
def test_words_of_the_notation_inside_other_words(name):
    assert list(read(f"S -> {name}").terminals) == [name]
    with pytest.raises(GrammarError):
        read(f"S -> {name}(a b)")


def test_a_long_grammar_is_read_fast():
    text = "\n".join(f"N{n} -> a{n} N{n + 1} | b{n}" for n in range(2_000)) + "\nN2000 -> a"
    begin = time.process_time()
    assert len(CFG.from_string(text).productions) == 4_001
    assert time.process_time() - begin < 2


def test_a_name_in_two_unicode_forms_is_one_name():
    cfg = CFG.from_string('S -> caf\u00e9 B\nB -> cafe\u0301\ncafe\u0301 "e\u0301" cost=1')
    assert list(cfg.terminals) == ["caf\u00e9"]
    assert cfg.symbols["caf\u00e9"] == Symbol("e\u0301", "", {"cost": 1})


def test_a_sign_with_a_label_may_end_a_rule():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CFG.from_string('%order forward\nS -> a ; | S a ;\n; "semicolon"')


def test_signs_that_stand_alone_are_names() -> None:
    assert list(CFG.from_string("%order forward\nE -> E + T | x ? *\nT -> t").terminals) == ["+", "x", "?", "*", "t"]


def test_what_stands_in_groups_is_counted_and_limited() -> None:
    cfg = CFG.from_string("%limit 2 b\n%order forward\nS -> (a some(b, c))+")
    assert cfg.limits == Limits({"b": 2})
    assert list(cfg.terminals) == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["", "   \n\t\n", "# only a comment", "\ufeff", "\n# c\n\n#", "\r\n"])
def test_nothing_at_all(text):
    with pytest.raises(GrammarError, match="the grammar is empty"):
        read(text)


class TestLetters:
    @pytest.mark.parametrize(
        ("text", "rules"),
        [
            ("T → BI|DT", [("T", "B I"), ("T", "D T")]),
            ("S->aSb|ε", [("S", "a S b"), ("S", "")]),
            ("S ::= A₁A₂; A₁ -> a; A₂ -> b'", [("S", "A1 A2"), ("A1", "a"), ("A2", "b'")]),
            ("S -> A1 A12\nA1 -> a\n\n  A12 -> b″ | c′", [("S", "A1 A12"), ("A1", "a"), ("A12", "b''"), ("A12", "c'")]),
            ("S → éλ", [("S", "é λ")]),
            ("S -> a ε b", [("S", "a b")]),
        ],
    )
    def test_letters_with_digits_and_primes(self, text, rules):
        cfg = CFG.from_letters(text)
        assert [(p.head, " ".join(p.body)) for p in cfg.productions] == rules
        assert cfg.start == rules[0][0]

    def test_start(self):
        assert CFG.from_letters("A -> aB; B -> bA | b", start="B").start == "B"
        with pytest.raises(GrammarError, match="unknown start symbol: C"):
            CFG.from_letters("A -> a", start="C")

    @given(st.text(st.sampled_from("SABab1'|;->→ε \n+_=!₂"), max_size=20))
    @examples(150)
    def test_any_text_is_read_or_refused(self, text):
        with quiet():
            try:
                cfg = CFG.from_letters(text)
            except GrammarError as error:
                assert error.column is None or from_caret(error) == error.source_line[error.column - 1 :]
            else:
                assert CFG.from_string(str(cfg)) == cfg


def make(name: str, *inputs: str, output: str = "text") -> Tool:
    return Tool(name, tuple(map(kind_named, inputs)), kind_named(output), lambda *_: "")


def openagi_tools() -> Toolkit:
    """The fifteen tools with the signatures of the experts, none of which is loaded."""
    settings = read_settings()
    loaders = {name: settings.get_loader(name) for name in settings.tools}
    return Toolkit([make(name, *one.inputs, output=one.output) for name, one in loaders.items()])


def bodies(cfg: CFG, names: dict[str, str]) -> set[tuple[str, ...]]:
    """The rules with each class written out, nonterminals under other names."""
    found = set()
    for production in cfg.productions:
        if production.head in cfg.classes and production.head not in names:
            continue
        first, *rest = production.body
        for name in [p.body[0] for p in cfg.by_head[first]] if first in cfg.classes and first not in names else [first]:
            found.add((production.head, name, *rest))
    return {tuple(names.get(name, name) for name in row) for row in found}


def test_the_shipped_grammar_of_openagi_is_what_its_signatures_say() -> None:
    shipped = CFG.from_file("grammars/openagi.cfg")
    made = CFG.from_tools(openagi_tools())
    assert bodies(made, {}) == bodies(shipped, {"T": "text", "I": "image"})
    assert (made.limits.default, set(made.limits.at_most)) == (1, {"input_image", "input_text"})
    found = differences(made, shipped, 4)
    assert found.equal
    assert found.counts[-1] == (4, 420, 420)
    assert made.order == "prefix"
    assert not cfg_warnings(made)
    assert CFG.from_string(str(made)) == made
    # The toolkit agrees with the grammar that was made of it.
    openagi_tools().check(made)


def test_python_functions_with_hints() -> None:
    @tool
    def shout(text: str) -> str:
        """Puts a text in capitals."""
        return text.upper()

    @tool
    def join(one: str, other: str) -> str:
        return one + other

    made = CFG.from_tools(Toolkit([shout, join]))
    assert made.symbols["shout"].description == "Puts a text in capitals."
    assert made.accepts(["join", "shout", "input_text", "input_text"])
    assert not made.accepts(["input_text"])
    assert not made.accepts(["join", "input_text"])
    assert Lookahead(made).count() == 5  # either alone, shout on either side of join or around it


def test_inputs_and_names() -> None:
    tools = [make("caption", "image"), make("text", "text"), make("clock"), make("speak", "text", output="image")]
    made = CFG.from_tools(tools, {"photo": "image"}, uses=None)
    assert {"photo", "caption", "text", "clock", "speak"} == set(made.terminals)
    assert made.accepts(["text", "text", "caption", "speak", "clock"])
    assert not made.limits
    with pytest.warns(GrammarWarning, match="no plan can use caption: nothing gives it a value of kind image"):
        few = CFG.from_tools([make("caption", "image"), make("clock")], {})
    assert set(few.terminals) == {"clock"}


@pytest.mark.parametrize(
    ("tools", "inputs", "said"),
    [
        ([], None, "there is no tool"),
        ([make("a"), make("a")], None, "two tools are called a"),
        ([make("a", "text")], {"a": "text"}, "a tool and an input"),
    ],
)
def test_what_is_no_toolkit(tools: list[Tool], inputs: dict[str, str] | None, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        CFG.from_tools(tools, inputs)
    with pytest.warns(GrammarWarning), pytest.raises(GrammarError, match="no tool can be applied"):
        CFG.from_tools([make("a", "text")], {})
