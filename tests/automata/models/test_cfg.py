"""Grammars: symbols, selections, repetitions and groups; what they derive."""

from __future__ import annotations

import itertools
import re
from functools import cache
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, Production, SumLimit, Symbol, selection
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.models.repetition import Repetition, parse_repetition
from formal_llm.automata.models.symbols import expand_selections, quote_text, selection_members, unquote_text
from formal_llm.errors import GrammarError
from tests import oracles
from tests.automata.messages import quiet
from tests.oracles import all_words, alphabet, language, rules, to_pyformlang
from tests.strategies import bounds, examples, grammars, names, productions, repeating, texts


class TestSymbol:
    @given(texts, texts, st.dictionaries(st.sampled_from(["cost", "kg"]), st.integers(0, 3)))
    def test_equal_ones_have_equal_hashes(self, label, description, numbers):
        one = Symbol(label, description, numbers)
        other = Symbol(label, description, dict(reversed(numbers.items())))
        assert one == other
        assert hash(one) == hash(other)
        assert one != Symbol(label + "x", description, numbers)


class TestQuote:
    @given(texts | st.text())
    @examples(200)
    def test_there_and_back_on_one_line(self, text):
        literal = quote_text(text)
        assert unquote_text(literal) == text
        assert literal[0] == literal[-1] == '"'
        assert not set(literal) & set("\n\r")
        # Between the quotes each quote has an odd number of backslashes before it.
        inside = literal[1:-1]
        assert '"' not in inside.replace("\\\\", "").replace('\\"', "")

    def test_other_escapes_stand_for_themselves(self):
        assert unquote_text(r'"\t\q\\n"') == "\tq\\n"


def words_of(productions, symbol):
    """The words of a symbol, one for each derivation; the productions have no cycle."""
    bodies = [p.body for p in productions if p.head == symbol]
    if not bodies:
        yield (symbol,)
    for body in bodies:
        found = [()]
        for name in body:
            found = [word + more for word in found for more in words_of(productions, name)]
        yield from found


class TestSelection:
    @given(st.lists(names.filter(lambda name: ", " not in name), min_size=1, max_size=5, unique=True))
    @examples(60)
    def test_each_subset_in_order_by_one_derivation(self, terminals):
        assume(all(selection_members(name) is None for name in terminals))
        symbol = selection(*terminals)
        assert selection_members(symbol) == tuple(terminals)
        made = expand_selections([symbol])
        assert len(set(made)) == len(made)
        derived = [*words_of(made, symbol)]
        assert sorted(derived) == sorted(oracles.spelled_out(symbol))


def nltk_accepts(cfg):
    from nltk import CFG as Other
    from nltk import ChartParser, Nonterminal
    from nltk import Production as OtherProduction
    from nltk.parse.chart import Chart

    table = rules(cfg)
    made = [
        OtherProduction(Nonterminal(head), [Nonterminal(n) if n in table else n for n in body])
        for head, bodies in table.items()
        for body in bodies
    ]
    start = Nonterminal(cfg.start)
    parser = ChartParser(Other(start, made))

    def accepts(word):
        chart: Chart = parser.chart_parse(list(word))
        # Trees are not asked for: with unit cycles there are infinitely many.
        return any(
            edge.is_complete() and edge.lhs() == start and edge.span() == (0, len(word))
            for edge in chart.edges()
            if not isinstance(edge.lhs(), str)
        )

    return accepts


HARD = [
    "S -> S S | a | ε",
    "S -> S a | b",
    "S -> A\nA -> B | a\nB -> A | S",
    "S -> S | a",
    "S -> A S b | ε\nA -> a | ε",
    "S -> A A A\nA -> ε | a A | A b",
    "S -> a S a | b S b | ε",
    "S -> B a\nB -> S b | ε",
    "S -> some(a, b, c) S | c",
]


class TestAccepts:
    @pytest.mark.parametrize("text", HARD)
    @pytest.mark.filterwarnings("ignore:.*can become")
    def test_hard_grammars_agree_with_all_oracles(self, text):
        with quiet():
            cfg = CFG.from_string(text)
        words, other, chart = language(cfg, 5), to_pyformlang(cfg), nltk_accepts(cfg)
        for word in all_words(alphabet(cfg), 5 if len(alphabet(cfg)) < 3 else 4):
            assert cfg.accepts(word) == (word in words) == other.contains(list(word)) == chart(word), word

    @given(grammars())
    @examples(120)
    def test_random_grammars_agree_with_all_words_written_out(self, cfg):
        words = language(cfg, 4)
        for word in all_words(alphabet(cfg)[:3], 4):
            assert cfg.accepts(word) == (word in words), word

    def test_unknown_symbols_and_nonterminals_are_no_words(self):
        cfg = CFG.from_string("S -> a S | ε")
        assert not cfg.accepts(["b"])
        assert not cfg.accepts(["a", "S"])
        assert cfg.accepts(name for name in ["a", "a"])

    def test_long_words(self):
        cfg = CFG.from_string("S -> a S b | ε")
        assert cfg.accepts(["a"] * 300 + ["b"] * 300)
        assert not cfg.accepts(["a"] * 300 + ["b"] * 299)


class TestParts:
    CFG = CFG(
        [("S", ("A", "some(x, y)")), ("A", ("a",)), ("A", ("b",)), ("B", ("B", "c")), ("S", ()), ("A", ("a",))],
        symbols={"A": Symbol("An A"), "a": Symbol(), "b_c": Symbol()},
    )

    def test_symbols_in_order_of_appearance(self):
        assert list(self.CFG.nonterminals) == ["S", "A", "B"]
        assert list(self.CFG.terminals) == ["x", "y", "a", "b", "c"]
        assert list(self.CFG.selections) == ["some(x, y)"]
        assert self.CFG.start == "S"

    def test_labels(self):
        cfg = self.CFG.with_labels({"a": "the a", "B": "the B"})
        assert cfg.label("a") == "the a"
        assert cfg.label("A") == "An A"
        assert cfg.label("some(x, y)") == "some of x, y"
        assert CFG([("S", ("cut_it",))]).label("cut_it") == "cut it"
        assert set(self.CFG.symbols) == {"A"}

    def test_classes_are_choices_of_one_terminal(self):
        cfg = CFG.from_string('S -> T U V W X\nT -> a | b\nU -> a | b "text"\nV -> a | T\nW -> a b\nX -> some(a, b)')
        assert cfg.classes == {"T"}

    @given(grammars())
    @examples(100)
    def test_productive_nullable_and_reachable(self, cfg):
        table = rules(cfg)
        for head in cfg.nonterminals:
            words = language(cfg.with_start(head), 0)
            assert (head in cfg.nullable) == (() in words)
        productive = {head for head in table if _derives_something(table, head)}
        assert {name for name in cfg.productive if name in table} == productive
        reached, todo = {cfg.start}, [cfg.start]
        while todo:
            for name in itertools.chain.from_iterable(table.get(todo.pop(), [])):
                if name not in reached:
                    reached.add(name)
                    todo.append(name)
        known = {*cfg.nonterminals, *cfg.terminals}
        assert cfg.reachable & known == reached & known


def _derives_something(table, head, above=frozenset()):
    """Whether some derivation ends: one without a nonterminal twice on a path is enough."""
    if head not in table:
        return True
    if head in above:
        return False
    return any(all(_derives_something(table, name, above | {head}) for name in body) for body in table[head])


class TestValue:
    def test_equal_by_content(self):
        one, other = CFG([("S", ("a",))]), CFG([Production("S", ("a",))], start="S")
        assert one == other
        assert hash(one) == hash(other)
        assert one != CFG([("S", ("a",))], limits=Limits(default=1))
        assert one != CFG([("S", ("a",))], symbols={"a": Symbol("A")})
        assert one != CFG([("S", ("a",)), ("S", ())])
        assert one != "S -> a"

    def test_changed_copies_leave_the_rest_alone(self):
        cfg = CFG.from_string('%order prefix\n%limit 1 a\nS -> A a\nA -> a "step" | ε\na "An a" cost=2')
        assert cfg.with_start("A").start == "A"
        assert cfg.with_start("A").with_start("S") == cfg
        assert cfg.with_limits(Limits(default=2)).limits == Limits(default=2)
        assert cfg.with_limits(cfg.limits) == cfg
        assert cfg.with_labels({"a": "other"}).symbols["a"] == Symbol("other", "", {"cost": 2})
        with pytest.raises(GrammarError):
            cfg.with_start("Z")

    def test_is_immutable(self):
        cfg = CFG.from_string("S -> a")
        with pytest.raises(AttributeError):
            cfg.start = "A"
        with pytest.raises(TypeError):
            cfg.symbols["a"] = Symbol("A")


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda: CFG([]), "at least one production"),
            (lambda: CFG([("S", ("a b",))]), "'a b' cannot be the name"),
            (lambda: CFG([("S", ("",))]), "'' cannot be the name"),
            (lambda: CFG([("S", ("ε",))]), "'ε' cannot be the name"),
            (lambda: CFG([("S", ("a->b",))]), "cannot be the name"),
            (lambda: CFG([("S", ("%x",))]), "cannot be the name"),
            (lambda: CFG([("some(a)", ("a",))]), "cannot be the name"),
            (lambda: CFG([("S", ("some()",))]), "cannot be the name"),
            (lambda: CFG([("S", ("any(a, b)",))]), "cannot be the name"),
            (lambda: CFG([("S", ("some(a, a)",))]), "names a terminal twice"),
            (lambda: CFG([("S", ("some(a, S)",))]), "holds the nonterminal S"),
            (lambda: CFG([("Start", ("a",))], start="Strat"), r"unknown start symbol: Strat \(did you mean Start\?\)"),
            (lambda: CFG([("S", ("a",))], start="a"), "unknown start symbol: a"),
            (lambda: CFG([("S", ("boil",))], symbols={"biol": Symbol("x")}), r"biol \(did you mean boil\?\)"),
            (lambda: CFG([("S", ("boil",))], limits=Limits({"biol": 1})), r"biol \(did you mean boil\?\)"),
            (lambda: CFG([("S", ("a",))], limits=Limits(at_least={"b": 1})), "unknown symbol in a limit: b"),
            (lambda: CFG([("S", ("a",))], limits=Limits({"S": 1})), "S cannot be counted: it is a nonterminal"),
            (lambda: CFG([("S", ("a",))], limits=Limits(sums=(SumLimit("cost", 1),))), "unknown quantity in a limit"),
            (lambda: CFG([("S", ("a",))], symbols={"a": Symbol(numbers={"cost": -1})}), "cost"),
            (lambda: CFG([("S", ("a",))], symbols={"a": Symbol(numbers={"cost": float("nan")})}), "cost"),
            (lambda: CFG([("S", ("a",))], symbols={"a": Symbol(numbers={"my cost": 1})}), "my cost"),
            (lambda: CFG([("S", ("a",))], symbols={"S": Symbol(numbers={"cost": 1})}), "nonterminal"),
        ],
    )
    def test_grammars_in_code_are_checked_too(self, make, problem):
        with pytest.raises(GrammarError, match=problem):
            make()


#: A letter; alternatives of sequences; something repeated from least to most times.
Expression = str | tuple[tuple["Expression", ...], ...] | tuple["Expression", int, "int | None"]
LONGEST = 4
WORDS = ["".join(word) for length in range(LONGEST + 1) for word in product("ab", repeat=length)]

expressions = st.recursive(
    st.sampled_from("ab"),
    lambda inner: (
        st.lists(st.lists(inner, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
        | st.builds(lambda of, many: (of, *many), inner, bounds)
    ),
    max_leaves=5,
)


def is_repetition(one: Expression) -> bool:
    return isinstance(one, tuple) and not isinstance(one[-1], tuple)


def written(one: Expression) -> str:
    """An expression as a grammar's body has it."""
    if isinstance(one, str):
        return one
    if is_repetition(one):
        inner = f"({written(one[0])})" if is_repetition(one[0]) else written(one[0])
        return str(Repetition(inner, *one[1:]))
    return f"({' | '.join(' '.join(map(written, body)) for body in one)})"


def grammar(one: Expression, more: str = "") -> CFG:
    with quiet():
        return CFG.from_string(f"S -> {written(one)} {more}")


def canonical(one: Expression) -> Expression:
    """The same expression with each alternative once."""
    if isinstance(one, str):
        return one
    if is_repetition(one):
        return (canonical(one[0]), *one[1:])
    return tuple(dict.fromkeys(tuple(map(canonical, body)) for body in one))


def pattern(one: Expression) -> str:
    if isinstance(one, str):
        return one
    if is_repetition(one):
        return f"(?:{pattern(one[0])}){{{one[1]},{'' if one[2] is None else one[2]}}}"
    return "(?:" + "|".join("".join(map(pattern, body)) for body in one) + ")"


@cache
def ways(one: Expression, word: str) -> int:
    """In how many ways a regular expression reads a word: all splits, counted."""
    if isinstance(one, str):
        return int(word == one)
    if not is_repetition(one):
        return sum(sequence(body, word) for body in dict.fromkeys(one))
    of, least, most = one
    return sum(sequence((of,) * count, word) for count in range(least, (len(word) if most is None else most) + 1))


def sequence(parts: tuple[Expression, ...], word: str) -> int:
    if not parts:
        return int(not word)
    return sum(
        ways(parts[0], word[:cut]) * sequence(parts[1:], word[cut:])
        for cut in range(len(word) + 1)
        if ways(parts[0], word[:cut])
    )


def may_be_empty(one: Expression) -> bool:
    return bool(re.fullmatch(pattern(one), ""))


def repeats_what_may_be_empty(one: Expression) -> bool:
    if isinstance(one, str):
        return False
    if is_repetition(one):
        return (may_be_empty(one[0]) and one[1:] != (1, 1)) or repeats_what_may_be_empty(one[0])
    return any(repeats_what_may_be_empty(part) for body in one for part in body)


@given(expressions)
@examples(150)
def test_they_mean_what_regular_expressions_mean_and_add_no_ambiguity(one: Expression) -> None:
    if repeats_what_may_be_empty(one):
        with pytest.raises(GrammarError, match="may be empty"):
            grammar(one)
        return
    cfg = grammar(one)
    compiled = re.compile(pattern(one))
    for word in WORDS:
        assert cfg.accepts(tuple(word)) == bool(compiled.fullmatch(word))
        found = derivations(cfg, tuple(word), 20)
        assert len(found.found) == min(20, ways(canonical(one), word))


@given(expressions)
@examples(60)
def test_plans_are_counted_as_regular_expressions_read_them(one: Expression) -> None:
    assume(not repeats_what_may_be_empty(one))
    matched = sum(bool(re.fullmatch(pattern(one), word)) for word in WORDS)
    assert Lookahead(grammar(one, "end")).count(of="words", max_length=LONGEST + 1) == matched


@given(expressions, st.data())
@examples(100)
def test_what_is_printed_is_read_back(one: Expression, data: st.DataObject) -> None:
    made = [CFG(data.draw(repeating(data.draw(productions()))))]
    if not repeats_what_may_be_empty(one):
        made.append(grammar(one))
    for cfg in made:
        text = str(cfg)
        try:
            with quiet():
                again = CFG.from_string(text)
        except GrammarError as error:
            assert "no finite word" in str(error) or "empty" in str(error) or "end" in str(error), error
        else:
            assert again == cfg
            assert str(again) == text
        assert CFG(cfg.productions, cfg.start) == cfg  # to give them again changes nothing


@pytest.mark.parametrize(
    ("name", "least", "most", "words"),
    [
        ("a*", 0, None, "any number of X"),
        ("a+", 1, None, "one or more X"),
        ("a?", 0, 1, "X or nothing"),
        ("a{3}", 3, 3, "X, 3 times"),
        ("a{2,}", 2, None, "X, at least 2 times"),
        ("a{0,4}", 0, 4, "X, at most 4 times"),
        ("a{2,4}", 2, 4, "X, 2 to 4 times"),
        ("(a b | c)*", 0, None, "any number of X"),
    ],
)
def test_names_tell_what_they_mean(name, least, most, words) -> None:
    found = parse_repetition(name)
    assert (found.least, found.most) == (least, most)
    assert str(found) == name
    assert found.describe("X") == words
    cfg = CFG.from_string(f"%order forward\nS -> {name}")
    assert cfg.label(name) == found.describe(cfg.label(found.of))


@pytest.mark.parametrize("name", ["a", "*", "+", "?", "}", "{3}", "a{}", "a{x}", "a}", "some(a, b)", "(a b)"])
def test_other_names(name) -> None:
    assert parse_repetition(name) is None or name in ("a{}",)


def test_groups() -> None:
    cfg = CFG.from_string("%order forward\nS -> ((a b)+ c | d)* ( a ( b | c )* | ε )")
    assert cfg.authored[0].body == ("((a b)+ c | d)*", "(a (b | c)* | ε)")
    assert list(cfg.terminals) == ["a", "b", "c", "d"]
    assert cfg.label("(a (b | c)* | ε)") == "a, any number of b or c or nothing"


def test_they_are_made_by_the_reader_alone() -> None:
    for made in ([("S", ("a*",))], [("S", ("a*",)), ("a*", ("b",))], [("S", ("(a b)",)), ("(a b)", ("a",))]):
        with pytest.raises(GrammarError, match="no rules of its own") as caught:
            CFG(made)
        assert "CFG.from_string" in caught.value.suggestion
    with pytest.raises(GrammarError, match="no label of its own"):
        CFG.from_string("%order forward\nS -> a*").with_labels({"a*": "many"})
