import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.emptiness import explain_unused, find_unused_terminals
from formal_llm.automata.languages.grammar_warnings import cfg_warnings, empty_reason, warn_of_similar_steps
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
            ("Job -> Step\nStep -> Step | wash", "cycle", "Step", "2:1", "Step can become Step again"),
            ("S -> N S N | a\nN -> b | ε", "cycle", "S", "1:1", "leave out the rule that leads back"),
            ("S -> T | a\nT -> S | b", "cycle", "S", "1:1", "S can become S again (by T)"),
            ("S -> epsilon | open S close", "typo", "epsilon", "1:6", "if the empty word is meant, write ε"),
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

    def test_tools_with_one_input_each(self):
        with pytest.warns(GrammarWarning, match="the rule Text -> translate Text looks like nested calls"):
            CFG.from_string(
                'Text "a text" -> describe Image | translate Text\nImage "an image" -> sharpen Image | photo'
            )

    @pytest.mark.parametrize(
        "text",
        [
            "Day -> wake Breakfast work\nBreakfast -> tea Toast | coffee Toast\nToast -> bread | toast",
            "Day -> wake Morning Evening\nMorning -> jog Morning | rest\nEvening -> read Evening | sleep",
            "S -> a S | b",
            'Day "the day" -> wake Rest\nRest "the rest" -> work Rest | sleep',
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
        found = {(d.kind, d.symbol) for d in cfg_warnings(cfg) if d.kind not in ("typo", "cycle")}
        for head in cfg.nonterminals:
            sub = PDA.from_cfg(cfg.with_start(head))
            assert (("unproductive", head) in found) == Reference(sub, cfg.limits).empty
        table, reached = rules(cfg), {cfg.start}
        while more := {n for head in reached for body in table.get(head, []) for n in body} - reached:
            reached |= more
        assert {symbol for kind, symbol in found if kind == "unreachable"} == set(cfg.nonterminals) - reached


@given(grammars())
@examples(60)
def test_rules_by_which_a_symbol_becomes_itself(cfg):
    table = rules(cfg)
    productive = {
        head for head in cfg.nonterminals if not Reference(PDA.from_cfg(cfg.with_start(head)), Limits()).empty
    }
    empty = {head for head in productive if () in language(cfg.with_start(head), 0)}
    becomes = {
        (head, name) for head in productive for body in table[head] for place, name in enumerate(body)
        if name in productive and all(other in empty for other in (*body[:place], *body[place + 1 :]))
    }  # fmt: skip
    for _ in table:
        becomes |= {(one, other) for one, middle in becomes for start, other in becomes if start == middle}
    found = [warning.symbol for warning in cfg_warnings(cfg) if warning.kind == "cycle"]
    circular = {one for one, other in becomes if one == other}
    assert set(found) <= circular
    for head in circular:
        assert any(name == head or {(name, head), (head, name)} <= becomes for name in found)


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


def test_what_leaves_no_place_for_a_terminal_is_named() -> None:
    cfg = CFG.from_string("S -> a S b | c | d a d d\n%limit 1 a d\n%limit 3 c")
    assert explain_unused(Lookahead(cfg), "d") == ["%limit 1 d"]
    assert explain_unused(Lookahead(PDA.from_cfg(cfg).with_limits(Limits(), ["z"])), "z") == []


@pytest.mark.parametrize(
    "forms",
    [
        ("roll_back", "rollback", "Roll-back", "rolling back", "rollbacks", "rollBack"),
        ("restart", "Restarts", "restarted", "restarting"), ("log_in", "login", "logging_in"),
        ("process", "processes", "processing"), ("plan", "plans", "planned", "planning"), ("bake", "baking", "baked"),
    ],
)  # fmt: skip
def test_spacing_case_and_regular_endings_are_no_difference(forms: tuple[str, ...]) -> None:
    assert len(warn_of_similar_steps(forms, str)) == len(forms) - 1


def test_other_names_are_not_taken_for_one() -> None:
    names = ("approve", "approval", "wash", "watch", "step1", "step2", "get_order", "get_user", "test", "taste")
    assert warn_of_similar_steps([*names, "a", "A", "as", "wash"], str) == []


def test_labels_are_compared_and_not_the_names_beside_them() -> None:
    labels = {"n1": "Roll back", "n2": "Rollback", "n3": "Roll back", "n4": "Deploy"}
    (warning,) = warn_of_similar_steps(labels, labels.__getitem__)
    assert warning.startswith("Roll back and Rollback differ only in how they are spelled")
