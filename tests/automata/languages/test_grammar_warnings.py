import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead, constraint
from formal_llm.automata.languages.fronts import ConfigurationSets
from formal_llm.automata.languages.grammar_warnings import (
    cfg_warnings,
    empty_reason,
    find_unused_terminals,
    without_left_recursion,
)
from formal_llm.automata.models.symbols import ORDERS
from formal_llm.errors import GrammarError, GrammarWarning
from tests.oracles import Reference, language, rules
from tests.strategies import examples, grammars, limited_grammars

CLEAN = [
    "S -> a S | b",
    "S -> T\nT -> B I | a\nB -> b\nI -> i",
    "S -> Verb verb\nVerb -> verb | walk",
    "S -> step1 step2 step3 S3\nS3 -> c",
    "S -> some(Cook, cook)\n# a selection is meant",
    'S -> Cook cool\nCook -> boil\ncool "let it cool"',
    "S -> Step1 step2\nStep1 -> a",
    "S -> Kitchen garden\nKitchen -> cook",
    "%limit 1\n%require 1 a\nS -> a S | b",
]


class TestWarnings:
    @pytest.mark.parametrize("text", CLEAN)
    def test_none_for_clean_grammars(self, text):
        # pytest turns a warning into an error.
        assert cfg_warnings(CFG.from_string(text)) == ()

    @pytest.mark.parametrize(
        ("text", "kind", "symbol", "place", "words"),
        [
            ("S -> a | T\nT -> T b", "unproductive", "T", "2:1", "no word can be derived from T"),
            ("S -> a\nT -> b", "unreachable", "T", "2:1", "T cannot be reached from the start symbol S"),
            ("%start B\nA -> a\nB -> b", "unreachable", "A", "2:1", "A cannot be reached from the start symbol B"),
            ("S -> cook | Clean\nCook -> a | b\nClean -> Cook c", "typo", "cook", "1:6", "did you mean Cook?"),
            ("S -> Ingredients\n  | Ingredeints\nIngredients -> a", "typo", "Ingredeints", "2:5", "mean Ingredients?"),
        ],
    )
    def test_each_names_place_and_symbol(self, text, kind, symbol, place, words):
        with pytest.warns(GrammarWarning) as caught:
            cfg = CFG.from_string(text, file="my.cfg")
        assert [(found.kind, found.symbol) for found in cfg_warnings(cfg)] == [(kind, symbol)]
        (message,) = [str(warning.message) for warning in caught]
        assert message.startswith(f"my.cfg:{place}: ")
        assert words in message
        assert str(cfg_warnings(cfg)[0]) == cfg_warnings(cfg)[0].message

    CALLS = "plan -> F T\nT -> B I | D T | F T T\nI -> A I | photo\nA -> a | b\nB -> c\nD -> d\nF -> f"

    def test_rules_that_look_like_nested_calls_where_the_order_is_not_said(self):
        says = (
            r"^x.cfg:2:1: the rule T -> F T T looks like nested calls, .* Write %order prefix if .* %order forward if F"
        )
        with pytest.warns(GrammarWarning, match=says):
            cfg = CFG.from_string(self.CALLS, file="x.cfg")
        assert cfg.order == "forward"
        for order in ORDERS:  # said, also where it is read again from what was written
            assert CFG.from_string(str(CFG.from_string(f"%order {order}\n{self.CALLS}"))).order == order
        assert CFG.from_letters("T -> BI|FTT\nI -> AI|i").order == "prefix"

    @pytest.mark.parametrize(
        "text",
        [
            "Day -> wake Breakfast work\nBreakfast -> tea Toast | coffee Toast\nToast -> bread | toast",
            "Day -> wake Morning Evening\nMorning -> jog Morning | rest\nEvening -> read Evening | sleep",
            "S -> a S | b",
            "Plan -> setup Loop\nLoop -> try Check Loop | done\nCheck -> test Result\nResult -> pass | fail",
            "S -> open S S close | x",
            "S -> a S S | x y | S z",
            "Trip -> Way Stay\nWay -> train | bus\nStay -> hotel | tent",
        ],
    )
    def test_rules_of_steps_in_their_order_are_read_without_a_warning(self, text):
        assert CFG.from_string(text).order == "forward"

    def test_the_warning_points_at_the_line_that_read_the_grammar(self):
        with pytest.warns(GrammarWarning) as caught:
            CFG.from_string("S -> a\nT -> b")
        assert caught[0].filename == __file__

    def test_the_warning_points_at_the_line_that_read_the_file(self, tmp_path):
        (tmp_path / "x.cfg").write_text("S -> a\nT -> b")
        with pytest.warns(GrammarWarning) as caught:
            CFG.from_file(tmp_path / "x.cfg")
        assert caught[0].filename == __file__

    def test_a_grammar_made_in_code_does_not_warn_by_itself(self):
        assert [found.kind for found in cfg_warnings(CFG([("S", ("a",)), ("T", ("b",))]))] == ["unreachable"]

    @given(grammars())
    @examples(100)
    def test_unproductive_and_unreachable_are_just_those(self, cfg):
        found = {(d.kind, d.symbol) for d in cfg_warnings(cfg) if d.kind != "typo"}
        for head in cfg.nonterminals:
            sub = PDA.from_cfg(cfg.with_start(head))
            assert (("unproductive", head) in found) == Reference(sub, cfg.limits).empty
        table, reached = rules(cfg), {cfg.start}
        while more := {n for head in reached for body in table.get(head, []) for n in body} - reached:
            reached |= more
        assert {symbol for kind, symbol in found if kind == "unreachable"} == set(cfg.nonterminals) - reached


class TestEmpty:
    @given(limited_grammars())
    @examples(120)
    def test_a_reason_exactly_for_empty_languages(self, cfg):
        reason = empty_reason(cfg)
        assert (reason is not None) == Reference(PDA.from_cfg(cfg), cfg.limits).empty
        if reason is not None:
            assert reason.kind == "empty"
            assert reason.suggestion
            without = Reference(PDA.from_cfg(cfg), type(cfg.limits)()).empty
            assert ("no word can be derived from" in reason.message) == without
            assert ("limits, which clash" in reason.message or "no word keeps" in reason.message) == (not without)
            if without:
                assert not language(cfg, 4)

    def test_without_limits(self):
        with pytest.raises(GrammarError) as caught:
            CFG.from_string("S -> a T\nT -> b T | c U\nU -> T")
        assert caught.value.problem == "the language is empty: no word can be derived from S, T, U"
        assert caught.value.line == 1

    def test_the_place_is_the_rule_to_blame(self):
        with pytest.raises(GrammarError) as caught:
            CFG.from_string("A -> a | S\n\nS -> b S\n%start S")
        assert (caught.value.line, caught.value.column) == (3, 1)

    def test_limits_that_clash_are_named_and_no_others(self):
        with pytest.raises(GrammarError) as caught:
            CFG.from_string("%limit 2\n%limit 1 b\n%require 2 a\nS -> a S b | c")
        problem = caught.value.problem
        assert "the language is empty under these limits, which clash: " in problem
        assert set(problem.split("clash: ")[1].split("; ")) == {"%limit 1 b", "%require 2 a"}
        assert caught.value.suggestion == "loosen one of them"

    @pytest.mark.parametrize(("text", "empty"), [
        ("%limit 1 a\nS -> A a\nA -> a", True),
        ("%limit 2 a\nS -> A a\nA -> a", False),
        ("%limit 3 a\nS -> A A a\nA -> B\nB -> a a", True),
        ("%require 3 a\nS -> A a\nA -> a", True),
        ("%require 2 a\nS -> A a\nA -> a", False),
    ])  # fmt: skip
    def test_uses_on_all_levels_count(self, text, empty):
        if empty:
            with pytest.raises(GrammarError, match="no word keeps"):
                CFG.from_string(text)
        else:
            assert empty_reason(CFG.from_string(text)) is None

    def test_sums_are_named_too(self):
        with pytest.raises(GrammarError) as caught:
            CFG.from_string("%limit cost <= 5\n%limit 3 a\nS -> a S | b\na cost=1\nb cost=7.5")
        assert caught.value.problem == "no word keeps %limit cost <= 5"

    def test_long_lists_are_cut(self):
        rules = "\n".join(f"S{n} -> S{n + 1}" for n in range(9)) + "\nS9 -> S0"
        with pytest.raises(GrammarError, match="S0, S1, S2, S3, S4 and 5 more"):
            CFG.from_string(rules)


def test_unreachable_ones_and_those_that_limits_leave_no_place_for() -> None:
    cfg = CFG.from_string("S -> a S b | c | d a d d\n%limit 1 a d")
    assert find_unused_terminals(Lookahead(cfg)) == (["d"], [])
    assert find_unused_terminals(Lookahead(cfg), used=["d"]) == ([], [])
    assert find_unused_terminals(Lookahead(cfg), used=["a"], search_time=0) == ([], ["b", "c", "d"])
    assert find_unused_terminals(Lookahead(cfg, Limits({"a": 0}))) == (["a", "b", "d"], [])


@given(grammars())
@examples(60)
def test_the_same_words(cfg):
    pda = PDA.from_cfg(cfg)
    made = without_left_recursion(pda)
    if made is not pda:
        assert made.cfg is not None
        assert language(made.cfg, 3) == language(cfg, 3)


@given(limited_grammars())
@examples(40)
def test_under_the_same_limits(cfg):
    pda = PDA.from_cfg(cfg).with_limits(cfg.limits)
    made = without_left_recursion(pda)
    if made is not pda:
        assert made.cfg is not None
        assert {bound.line for bound in made.bounds} == {bound.line for bound in pda.bounds}
        words = language(cfg, 3)
        assert {word for word in words if made.accepts(word)} == {word for word in words if pda.accepts(word)}
        assert Lookahead(made).completable().value == Lookahead(pda).completable().value


def test_steps_one_after_the_other_take_few_configurations() -> None:
    cfg = CFG.from_string(
        "%order forward\n%limit 40 a\nSteps -> Steps Step | Step\nStep -> a | Block\nBlock -> Block end | begin"
    )
    fronts = ConfigurationSets(Lookahead(cfg), max_configurations=30)
    front = fronts.after_word(("begin", "end", "a") * 40)
    assert front.word is None
    assert list(front.allowed_terminals) == ["end", "begin"] or list(front.allowed_terminals) == ["begin"]
    assert front.after_terminal("a").is_viable is False


def test_mutual_recursion_and_a_constraint_on_top() -> None:
    cfg = CFG.from_string("%order forward\nS -> T a | b\nT -> S c | T d | a")
    both = cfg & constraint("(until_0_9 any empty)", cfg)
    made = without_left_recursion(both)
    assert made is not both
    assert made.bounds == both.bounds
    for word in language(cfg, 6):
        assert made.accepts(word)
    fronts = ConfigurationSets(Lookahead(both), max_configurations=50)
    assert fronts.after_word("bcaca").may_stop
    assert fronts.after_word("bcaca").word is None
    assert fronts.after_word("bb").is_viable is False


def test_what_stays_as_it_is() -> None:
    for text in ("S -> a S | b", "S -> E S a | b\nE -> ε"):
        pda = PDA.from_cfg(CFG.from_string(f"%order forward\n{text}"))
        assert without_left_recursion(pda) is pda
    finite = constraint("(until a b)", ["a", "b"]).with_limits(Limits(at_most={"a": 1}))
    assert without_left_recursion(finite) is finite


def test_what_recurses_again_further_on_is_turned_round_and_what_hides_behind_nothing_is_not() -> None:
    again = PDA.from_cfg(CFG.from_string("%order forward\nS -> S a S | b"))
    assert without_left_recursion(again) is not again
    hidden = PDA.from_cfg(CFG.from_string("%order forward\nS -> N S a | S c | b\nN -> n | ε"))
    assert without_left_recursion(hidden) is hidden
