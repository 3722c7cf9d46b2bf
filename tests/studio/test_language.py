"""What is said of rules while they are typed."""

from formal_llm import CFG, Lookahead
from tests.studio.texts import CHART, TEA, part, parts


def test_a_check_tells_all_in_the_order_in_which_it_is_known() -> None:
    assert [one["part"] for one in parts("check")] == ["problems", "picture", "shortest", "count", "samples"]
    assert part("shortest", "check")["plan"] == {"names": ["boil_water"], "labels": ["Boil water"]}
    assert part("count", "check")["text"] == "5"


def test_samples_are_plans_and_change_with_the_seed() -> None:
    lookahead = Lookahead(CFG.from_string(TEA))
    drawn = set()
    for seed in range(6):
        for plan in part("samples", "check", seed=seed)["plans"]:
            assert lookahead.source.accepts(plan["names"])
            drawn.add(tuple(plan["names"]))
    assert len(drawn) == 5
    assert parts("check", seed=3) == parts("check", seed=3)


def test_an_error_ends_it() -> None:
    (only,) = parts("check", "S - a")
    assert only["problems"][0]["line"] == 1


def test_rules_without_a_plan_say_why() -> None:
    *_, last = parts("check", "S -> a S b S | a b a\n%limit 1 b\n%require 4 a\n")
    assert "%require 4 a" in last["problems"][0]["message"]
    assert "%limit 1 b" in last["problems"][0]["message"]


def test_what_no_plan_uses_is_warned_of() -> None:
    *_, last = parts("check", "S -> a | b\n%limit 0 b\n")
    assert last["problems"][0]["message"] == "in no plan: b"


def test_infinite_languages_are_counted_up_to_a_length() -> None:
    assert "infinitely many" in part("count", "check", CHART, ".mmd")["text"]


def test_the_sizes_of_rules() -> None:
    assert part("problems", "check")["facts"] == [
        {"name": "grammar", "value": "1 nonterminal, 3 terminals, 3 productions"},
        {"name": "limits", "value": "limit 1 pour steep"},
    ]
    assert part("problems", "check", CHART, ".mmd")["facts"][0]["value"] == "1 decision, 2 steps"


def test_the_picture_near_a_symbol() -> None:
    text = "N0 -> t0 N1 | t0\n" + "".join(f"N{n} -> t{n} N{n + 1} | t{n}\n" for n in range(1, 200)) + "N200 -> t\n"
    assert "N150" in part("picture", "picture", text, near="N150")["mermaid"]
