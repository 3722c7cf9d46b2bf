"""Controlled English: whole texts."""

from __future__ import annotations

import pytest

from formal_llm import Behaviour
from formal_llm.authoring import read_english
from formal_llm.authoring.english import (
    Ambiguous,
    families,
    nearest_examples,
    normalize_text,
    read_procedure,
    rename_steps,
    split_sentences,
    weave_steps,
)
from formal_llm.authoring.names import NoName
from formal_llm.authoring.patterns import PROCEDURES
from formal_llm.automata.models.formula import or_
from formal_llm.errors import NotationError, NotUnderstood


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_the_text_is_a_file_with_each_sentence_over_its_formula() -> None:
    read = read_english("Wash before dry. Iron at most twice.\nNever iron directly after wash!", name="laundry")
    assert read.text == (
        "# Wash before dry. Iron at most twice.\n"
        "# Never iron directly after wash!\n"
        "(define laundry\n"
        "  (:states wash dry iron)\n"
        '  (:limits "%limit 2 iron")\n'
        "  (:behavior\n"
        "    (and\n"
        "      # Wash before dry\n"
        "      (not (next (until (and any (not (or wash dry))) dry) (until any empty)))\n"
        "      # Never iron directly after wash\n"
        "      (not (eventually (next wash iron))))))\n"
    )
    assert read.behaviour == Behaviour.from_string(read.text)
    assert [one.pattern for one in read.clauses] == ["before", "at most", "never directly after"]


def test_what_is_not_understood_is_said_with_the_nearest_pattern() -> None:
    with pytest.raises(NotUnderstood) as caught:
        read_english("Wash before dry.\nDry after washing. Be nice to the shirts, will you?\nIron at most twice.")
    error = caught.value
    assert [one[0] for one in error.sentences] == ["Dry after washing", "Be nice to the shirts, will you"]
    assert len(error.sentences[0][2]) == 3
    assert (error.line, error.column) == (2, 1)
    assert "2 sentences are not understood" in str(error)
    assert "Be nice to the shirts" in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no sentence"),
        ("Each step at most once.", "no sentence names a step"),
        ("The steps are wash and dry. Wassh before dry.", "wassh is not among the steps"),
        ("Wash before wash.", "a step and of itself"),
        ("Wash 3 to 2 times.", "impossible"),
        ("Wash before dry. Never wash. Dry at least once. Iron at most twice.", "no plan keeps all these sentences"),
        ("First ask. Then if ask, pay, otherwise go.", "a step and a question"),
        ("If it rains, stay, otherwise go, then sleep.", "in any case"),
        ("First wash and dry or iron.", "side by side"),
    ],
)
def test_wrong_texts(text: str, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_english(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Check. Then wash. If it is hot, dry.", "say what 'it' is"),
        ("Search the flat. Then cook. Wash hands first.", "not understood"),
        ("Then cook. First wash.", "it says 'first', and other steps stand before it"),
        ("Then cook. At the end wash. Then dry.", "it says 'at the end', and other steps stand behind it"),
        ("Wash before dry. Finally dry.", "no step stands before it; write: End with"),
        ("Wash may happen before dry.", "not understood"),  # it may, so it need not
        ("Retry may happen 3 times.", "not understood"),  # at most, or exactly
    ],
)
def test_words_that_point_elsewhere(text: str, said: str) -> None:
    with pytest.raises(NotUnderstood, match=said):
        read_english(text)


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_at_the_end_nothing_stands_behind() -> None:
    behaviour = read_english("First wash. At the end, dry. Iron is allowed.").behaviour
    assert behaviour.accepts(["iron", "wash", "iron", "dry"])
    assert not behaviour.accepts(["wash", "dry", "iron"])
    alone = read_english("Iron is allowed. Lock the door at the very end.").behaviour
    assert alone.accepts(["iron", "lock_door"]) and not alone.accepts(["lock_door", "iron"])


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_steps_that_may_be_one_are_told() -> None:
    read = read_english("Log in before rate the seller. Never rate twice.")
    assert read.doubts == ("rate and rate_seller are two steps here; if one is meant, call both by one name",)
    assert not read_english("The steps are rate, log in and rate seller. Never rate twice.").doubts


def test_the_sentences_that_clash_are_named_and_no_others() -> None:
    with pytest.raises(NotationError) as caught:
        read_english("Iron at most twice. Wash before dry. Never wash. Dry at least once.")
    assert "Wash before dry | Never wash | Dry at least once" in str(caught.value)
    assert "Iron" not in str(caught.value)


def test_steps_that_a_procedure_does_not_name_stand_anywhere() -> None:
    accepts = read_english("First wash. Then dry. Think at most once.").behaviour.accepts
    for plan in ("wash dry", "think wash dry", "wash think dry", "wash dry think"):
        assert accepts(plan.split())
    for plan in ("", "dry", "wash", "wash dry dry", "think wash think dry"):
        assert not accepts(plan.split())


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_quoted_names_and_comments() -> None:
    read = read_english('# what nobody should do\nNever "rm -rf. /" after `git push`.')
    assert read.steps == ("rm_-rf._/", "git_push")
    assert not read.behaviour.accepts(["git_push", "rm_-rf._/"])


@pytest.mark.parametrize("example", [example for example, _ in PROCEDURES])
def test_procedures_of_the_documentation_are_read(example: str) -> None:
    assert [one.pattern for one in read_english(example).clauses] == ["procedure"]


def test_the_nearest_examples_have_the_steps_of_the_sentence_and_are_read() -> None:
    assert nearest_examples("jump at most more 3 times")[0] == "Iron at most 2 times."
    assert nearest_examples("washing twice is forbidden")[1] == "Never retry twice in a row."
    assert "Hotel must happen." in nearest_examples("the car must be washed eventually by someone")
    for sentence in ("Ship the goods after payment.", "Somehow the page is acknowledged before touching the host"):
        for example in nearest_examples(sentence):
            assert read_english(example).steps
    assert any('"ship goods"' in example for example in nearest_examples("Ship the goods after payment."))


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_each_family_has_an_example_that_is_read() -> None:
    assert len({example for _, example in families()}) == len(families()) > 50
    for name, example in families():
        assert read_english(example if name == "the steps" else f"Jump is allowed.\n{example}").text


def test_where_sentences_end() -> None:
    text = "Wash the 2.5 kg load. Dry it!\n# a comment. Not read.\n\nIron; fold\n1. Pack\n2) Ship.\n- Never smoke\n"
    found = list(split_sentences(text))
    assert [(one.text, one.listed) for one in found] == [
        ("Wash the 2.5 kg load", False), ("Dry it", False), ("Iron", False), ("fold", False), ("Pack", True),
        ("Ship", True),
        ("Never smoke", False),
    ]  # fmt: skip
    assert all(text[one.at :].startswith(one.text) for one in found)


def test_a_full_stop_between_quotes_ends_nothing() -> None:
    assert [one.plain for one in split_sentences('Never "rm. all" twice.')] == ['never "rm. all" 2 times']


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("Wash no more than three times", "wash at most 3 times"),
        ("Wash once or twice", "wash 1 or 2 times"),
        ("Wash one or more times", "wash at least 1 times"),
        ("A must not come right after B", "a never come directly after b"),
        ("A mustn't happen", "a never happen"),
        ("Do A, if not, do B", "do a, otherwise, do b"),
        ("Up to   five\ntimes", "at most 5 times"),
        ("If hot, wash. Otherwise dry", "if hot, wash, otherwise dry"),
        ("Once the order is in, never change", "after the order is in, never change"),
        ("Once a day, wash", "1 times a day, wash"),
        ("Secondly, dry", "then, dry"),
        ("There must be no payment unless there was an invoice", "no payment unless an invoice"),
        ("A and then B", "a then b"),
        ('"Not Once" happens', '"Not Once" happens'),
    ],
)
def test_one_way_to_say_it(written: str, same: str) -> None:
    assert normalize_text(written) == same


@pytest.mark.parametrize(
    ("sentence", "formula"),
    [
        ("First wash, then dry, then iron", "(next wash dry iron)"),
        ("Either wash or dry, then iron", "(next (or wash dry) iron)"),
        ("Then wash and dry, in any order", "(or (next wash dry) (next dry wash))"),
        ("Then wash and then dry", "(next wash dry)"),
        ("Wash, then optionally dry", "(next wash (or dry empty))"),
        ("Then dry if needed", "(or dry empty)"),
        ("Finally wash up to 3 times", "(until_3 wash empty)"),
        ("Then wash between 2 and 3 times", "(until_2_3 wash empty)"),
        ("Then wash any number of times", "(until wash empty)"),
        ("Repeat draft or sketch until accept", "(until_1_* (or draft sketch) accept)"),
        ("Wash, followed by dry", "(next wash dry)"),
        ("If it is hot, open the window", "(or (next it_is_hot=yes open_window) it_is_hot=no)"),
        (
            "If asked for a refund then check then pay else answer",
            "(or (next asked_for_refund=yes check pay) (next asked_for_refund=no answer))",
        ),
        ("Wash, then if hot, dry, otherwise iron", "(next wash (or (next hot=yes dry) (next hot=no iron)))"),
        ("Then do nothing or wash", "(or empty wash)"),
    ],
)  # fmt: skip
def test_what_is_told(sentence: str, formula: str) -> None:
    assert str(read_procedure(normalize_text(sentence))) == formula


def test_what_is_no_procedure_or_not_clear() -> None:
    assert read_procedure("wash the car") is None
    assert str(read_procedure("wash the car", listed=True)) == "wash_car"
    with pytest.raises(NoName):
        read_procedure("then wash it")
    for sentence in (
        "if hot, wash, otherwise dry, then iron",
        "if hot, wash then dry",
        "then a, b or c and d",
        "then a, b, c, d, e and f",
    ):
        with pytest.raises(Ambiguous):
            read_procedure(sentence)


def test_weaving_and_renaming() -> None:
    told = read_procedure("wash at most 2 times, then dry or iron")
    assert told is not None
    assert str(rename_steps(told, str.upper)) == "(next (until_2 WASH empty) (or DRY IRON))"
    assert weave_steps(told, None) == told
    free = or_("x", "y")
    assert str(weave_steps(told, free)) == (
        "(next (until_2 (until (or x y) wash) empty) (or (until (or x y) dry) (until (or x y) iron)) "
        "(until (or x y) empty))"
    )
