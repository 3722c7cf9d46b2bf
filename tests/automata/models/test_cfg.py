import itertools

import pytest
from hypothesis import given

from formal_llm import CFG, Limits, Production, SumLimit, Symbol
from formal_llm.errors import GrammarError
from tests.automata.messages import quiet
from tests.oracles import all_words, alphabet, language, rules, to_pyformlang
from tests.strategies import examples, grammars


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
