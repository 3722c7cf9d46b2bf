"""The built-in stand-in: words in common, with an eye on whole plans."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Limits, Planner, Question
from formal_llm.llms.builtin import BuiltinLLM, stems
from formal_llm.llms.question import Term


@pytest.mark.parametrize(
    ("one", "other"),
    [("noisy", "noise"), ("resolutioned", "resolution"), ("generates", "generation"), ("queries", "query"),
     ("captioning", "caption"), ("translates", "translation"), ("images", "image"), ("labels", "label"),
     ("summarize", "summarization"), ("summarise", "summary"), ("colourless", "coloring"), ("favourite", "favorite")],
)  # fmt: skip
def test_words_of_one_family_have_one_stem(one: str, other: str) -> None:
    assert stems(one) == stems(other)


def test_small_words_do_not_count() -> None:
    assert stems("how to return the image in 3 steps") == stems("image 3")


KITCHEN = CFG.from_string(
    """
    %order prefix
    %limit 1
    Meal "meal" -> cook Raw | Dish
    Dish "dish" -> season Dish | Raw
    Raw "food" -> wash Raw | peel Raw | cut Raw | potato | carrot
    cook "Boil" "boils it in water until it is soft"
    season "Salt" "adds salt to it"
    wash "Wash" "washes dirty vegetables"
    peel "Peel" "peels off the skin"
    cut "Cut" "cuts it into slices"
    potato "a potato"
    carrot "a carrot"
    """
)


@pytest.mark.parametrize(
    ("task", "tools"),
    [
        ("Boil a dirty potato", {"cook", "wash", "potato"}),
        ("Salted slices of carrot", {"season", "cut", "carrot"}),
        ("A potato without its skin, sliced and boiled", {"cook", "peel", "cut", "potato"}),
    ],
)
def test_a_grammar_it_has_never_seen(task: str, tools: set[str]) -> None:
    assert set(Planner(KITCHEN, "builtin").plan(task).word) == tools


def test_what_is_mentioned_last_is_done_last() -> None:
    word = Planner(KITCHEN, "builtin").plan("Wash a carrot, peel it, cut it, then boil it").word
    assert word == ("cook", "cut", "peel", "wash", "carrot")


def test_where_rules_are_planned_forward_what_is_mentioned_first_is_done_first() -> None:
    rules = CFG.from_string("%limit 1\nS -> wash S | peel S | cut S | serve")
    assert Planner(rules, "builtin").plan("Peel it, wash it, then cut it").word[:3] == ("peel", "wash", "cut")
    assert Planner(rules, "builtin").plan("Cut it, peel it, then wash it").word[:3] == ("cut", "peel", "wash")


def test_nothing_more_than_the_task_asks_for() -> None:
    assert Planner(KITCHEN, "builtin").plan("").word in {("potato",), ("carrot",), ("cook", "potato")}
    recursive = CFG.from_string('S -> more S | done\nmore "more of it"')
    assert Planner(recursive, "builtin").plan("nothing of the kind").word == ("done",)


def test_a_selection_takes_what_the_task_names() -> None:
    cfg = CFG.from_string('S -> fry some(salt, pepper, chili)\nchili "chili" "makes it hot"')
    assert Planner(cfg, "builtin").plan("fried with pepper, hot").word == ("fry", "pepper", "chili")
    assert len(Planner(cfg, "builtin").plan("plain").word) == 2


def test_a_selection_takes_what_has_to_be_among_it() -> None:
    cfg = CFG.from_string("%require 1 a b\nS -> some(a, b, c, d) x | y x")
    assert Planner(cfg, "builtin").plan("buy c").word == ("a", "b", "c", "x")
    weighed = CFG.from_string("%limit kg = 7\nS -> some(a, b, c, d)\na kg=1\nb kg=2\nc kg=4\nd kg=3")
    assert Planner(weighed, "builtin").plan("buy c").word == ("c", "d")


def test_a_question_without_outlook_is_judged_by_its_texts() -> None:
    question = Question("?", ["walk to the park", "swim in the lake"], task="I want to swim")
    assert BuiltinLLM().ask(question).number == 2


def test_it_is_deterministic() -> None:
    plans = {Planner(KITCHEN, "builtin").plan("Boil and salt the carrot").word for _ in range(3)}
    assert len(plans) == 1


def test_what_is_required_is_used_without_a_detour() -> None:
    word = Planner(KITCHEN, "builtin", limits=Limits({}, {"peel": 1})).plan("Boil a dirty potato").word
    assert set(word) == {"cook", "wash", "peel", "potato"}


def test_ties_are_told() -> None:
    told: list[tuple[list[str], tuple[int, ...]]] = []
    llm = BuiltinLLM(on_tie=lambda question, best: told.append(([o.text for o in question.options], best)))
    question = Question("?", ["walk to the park", "swim in the lake", "stay at home"], task="I want to swim")
    assert llm.ask(question).number == 2
    assert told == []
    assert llm.ask(Question("?", ["walk", "swim", "stay"], task="I want to dance")).number == 1
    assert told == [(["walk", "swim", "stay"], (1, 2, 3))]
    # The first two are equally good, and better than the third.
    assert llm.ask(Question("?", ["eat", "a red car", "a blue car"], task="a car")).number == 2
    assert told[1:] == [(["eat", "a red car", "a blue car"], (2, 3))]
    assert llm.ask(Question("?", ["one"], task="")).number == 1
    assert len(told) == 2


def test_a_likeness_of_ones_own() -> None:
    def first_letters(words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        return [{n: 0.5 for n, word in enumerate(words) if word[0] == term.label[0]} for term in terms]

    question = Question("?", ["apple", "banana", "cherry"], task="bring something")
    assert BuiltinLLM(first_letters).ask(question).number == 2
    assert BuiltinLLM().ask(question).number == 1
