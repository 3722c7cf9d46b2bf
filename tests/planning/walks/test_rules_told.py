"""The rules in words."""

from formal_llm import CFG, PDA, Flowchart, Limits
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.rules_told import describe_limits, describe_names, describe_rules

TRIP = CFG.from_string("""
    %limit 1
    %limit 2 train
    %limit 0 plane
    %limit cost <= 300
    Trip "the trip" -> train Stay | plane
    Stay -> hotel | some(tent, friends)
    train "By train" "slow" cost=40
    hotel cost=120
""")


def test_a_grammar_is_told_by_its_symbols_and_what_they_are_made_of() -> None:
    table = ChoiceTable.of(TRIP)
    assert describe_names(table).splitlines() == [
        "- train: By train, slow, cost=40", "- hotel: cost=120", "- tent", "- friends",
    ]  # fmt: skip
    assert describe_rules(table).splitlines()[1:] == [
        '- Trip "the trip": train Stay | plane', "- Stay: hotel | some(tent, friends)",
    ]  # fmt: skip
    assert describe_limits(table).splitlines() == [
        "- each name at most once, where nothing else is said", "- never: plane", "- at most 2 times: train",
        "- cost <= 300",
    ]  # fmt: skip


def test_what_is_required_and_what_is_free_is_told() -> None:
    table = ChoiceTable.of(CFG.from_string("S -> a S | b"), limits=Limits({"a": None}, {"a": 2}, default=3))
    assert "- as often as you like: a" in describe_limits(table) and "- at least 2 times: a" in describe_limits(table)


def test_a_chart_is_told_by_its_places_its_questions_and_its_selections() -> None:
    chart = Flowchart.from_string("""
        flowchart TD
        s([Start]) --> hot{"Is it hot?"}
        hot -->|Yes| swim["Go swimming"]
        hot -->|No| bring{{"What to bring?"}}
        bring -->|A hat| walk["Go for a walk"]
        bring -->|A coat| walk
        swim --> e([End])
        walk --> e
    """)
    table = ChoiceTable.of(chart)
    assert "- hot=yes: Is it hot? Yes" in describe_names(table)
    rules = describe_rules(table)
    assert "- from hot: hot=yes -> swim, hot=no -> bring" in rules
    assert "one or more of bring=a_hat, bring=a_coat -> walk" in rules
    assert "some(" not in rules


def test_constraints_are_named_and_a_stack_of_ones_own_is_told_in_the_notation() -> None:
    pda = PDA.from_string("s, a, ε -> s, x\ns, b, x -> s, ε\n%start s\n%accept s")
    assert "s, b, x -> s, ε" in describe_rules(ChoiceTable.of(pda))
    once = PDA([("0", "a", None, "1")], start="0", accepting=["1"], name="a comes once")
    assert "- and: a comes once" in describe_rules(ChoiceTable.of(CFG.from_string("S -> a"), constraints=[once]))
