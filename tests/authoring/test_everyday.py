"""Everyday sentences: what they mean, and which are refused."""

from __future__ import annotations

from itertools import product

import pytest

from formal_llm.authoring import read_english
from formal_llm.authoring.everyday import read_everyday
from formal_llm.authoring.names import NoName
from formal_llm.errors import NotationError

pytestmark = pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")

#: Ways to write one rule, and a plan-by-plan description of it over the steps x and y and another one.
MEANINGS = {
    "x before y": (
        (
            "The page must be acknowledged before the host is touched.",
            "Acknowledge the page prior to touching the host.",
            "No host is touched until the page has been acknowledged.",
            "Never touch the host without acknowledging the page.",
            "Unless the page has been acknowledged, the host may not be touched.",
            "Acknowledging the page precedes touching the host.",
            "The host may be touched only once the page has been acknowledged.",
            "Make sure the page is acknowledged before you touch the host.",
            "Under no circumstances may anyone touch the host before the page has been acknowledged.",
            "Only after the page has been acknowledged may the host be touched.",
            "Touching the host is forbidden until the page is acknowledged.",
            "Remember to acknowledge the page ahead of touching the host.",
            "The host is touched after the page is acknowledged, never before.",
        ),
        lambda plan: "y" not in plan or "x" in plan[: plan.index("y")],
    ),
    "y later after each x": (
        (
            "Whenever the page is acknowledged, the host must be touched.",
            "After the page has been acknowledged, touch the host.",
            "Each time you acknowledge the page, the host has to be touched later.",
            "Acknowledging the page must be followed by touching the host.",
        ),
        lambda plan: all("y" in plan[at:] for at, step in enumerate(plan) if step == "x"),
    ),
    "y is the next after each x": (
        (
            "As soon as the page is acknowledged, touch the host.",
            "Immediately after acknowledging the page, the host must be touched.",
        ),
        lambda plan: all(plan[at + 1 : at + 2] == ("y",) for at, step in enumerate(plan) if step == "x"),
    ),
    "no y after x": (
        (
            "Once the page is acknowledged, stop touching the host.",
            "Once the page has been acknowledged, the host can no longer be touched.",
            "After acknowledging the page, never touch the host.",
            "From the moment the page is acknowledged, nobody may touch the host.",
        ),
        lambda plan: "x" not in plan or "y" not in plan[plan.index("x") :],
    ),
    "each y has its own x before it": (
        ("The page must be acknowledged before each host is touched.",),
        lambda plan: all(
            "x" in plan[start:at]
            for at, step in enumerate(plan)
            if step == "y"
            for start in [max((i + 1 for i, one in enumerate(plan[:at]) if one == "y"), default=0)]
        ),
    ),
    "at most two x": (
        (
            "The page may be acknowledged no more than twice.",
            "Never acknowledge the page more than two times.",
            "The page must not be acknowledged three times.",
            "Acknowledge the page up to twice.",
        ),
        lambda plan: plan.count("x") <= 2,
    ),
    "exactly one of them": (
        ("Either acknowledge the page or touch the host, but not both.",),
        lambda plan: ("x" in plan) != ("y" in plan),
    ),
    "x first of all": (
        (
            "Start by acknowledging the page.",
            "Every shift begins with acknowledging the page.",
            "Acknowledging the page comes first.",
            "The very first thing to do is acknowledge the page.",
            "Kick off with acknowledging the page.",
        ),
        lambda plan: plan[:1] == ("x",),
    ),
    "x last of all": (
        (
            "Finish by acknowledging the page.",
            "Acknowledging the page is the very last step.",
            "Conclude with acknowledging the page.",
        ),
        lambda plan: plan[-1:] == ("x",),
    ),
}


@pytest.mark.parametrize("meaning", MEANINGS)
def test_what_sentences_mean(meaning: str) -> None:
    sentences, holds = MEANINGS[meaning]
    names = {"x": "acknowledge_page", "y": "touch_host", "z": "jump"}
    for sentence in sentences:
        behaviour = read_english(
            f"{sentence} Acknowledge the page freely. Touch the host freely. Jump is allowed."
        ).behaviour
        assert set(behaviour.states) == set(names.values()), sentence
        for length in range(5):
            for plan in product("xyz", repeat=length):
                assert behaviour.accepts([names[step] for step in plan]) == holds(plan), (sentence, plan)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Acknowledge the page within 5 minutes of the alarm.", "have no clock"),
        ("There must be at least two hours between two doses.", "have no clock"),
        ("For every host, a check must pass before it is used.", "each thing of a kind"),
        (
            "Ship the goods after payment.",
            "ship goods only after payment; or: after each payment, ship goods must happen",
        ),
        ("A hotfix requires a code review.", "'first' or 'afterwards'"),
        ("If the order is cancelled, the goods must be restocked.", "a step or a fact"),
        ("Every change must be logged.", "each thing of a kind"),
        (
            "The carton may be opened, and the seal must be checked before the carton is shipped.",
            "where the first did not",
        ),
        ("The tank may be opened 3 times.", "at most, or exactly"),
        ("Carefully open the tank before filling it.", "'carefully' is left over"),
        ("A second nurse must check the dose before it is given.", ""),
        ("A second dose must be given before noon.", ""),
        ("Another nurse must check the dose before it is given.", "who does it"),
        ("The incident stays open until the fix is deployed.", ""),
        ("The customer must accept the terms and conditions before paying.", ""),
        ("Close the valve before lunch while the pump is running.", ""),
        ("The supplier may not be dropped until two reminders have been sent.", "a number is part of a step"),
        ("No two payments are released without an intervening inspection.", ""),
        ("The infusion must have been stopped beforehand.", "refers to a step of another sentence"),
    ],
)
def test_what_is_refused_and_why(sentence: str, reason: str) -> None:
    with pytest.raises(NoName) as caught:
        read_everyday(sentence)
    assert reason in str(caught.value)
    with pytest.raises(NotationError):
        read_english(sentence)


def test_a_fact_is_a_question_and_asks_only_where_it_holds() -> None:
    accepts = read_english(
        "If the guest is under 18, a guardian must sign the card before check-in, and the bar must not be opened."
    ).behaviour.accepts
    yes, no = "guest_is_under_18=yes", "guest_is_under_18=no"
    assert accepts([yes, "sign_card", "check-in"]) and accepts([no, "check-in", "open_bar"])
    for plan in (["check-in"], [yes, "check-in"], [yes, "open_bar"], [yes, no], [yes, yes]):
        assert not accepts(plan)


def test_words_for_each_are_honoured_or_in_doubt() -> None:
    own = read_english("Every restart needs an approval of its own.")
    assert own.steps == ("approval", "restart") and not own.doubts
    accepts = own.behaviour.accepts
    assert accepts(["approval", "restart", "approval", "restart"]) and not accepts(["approval", "restart", "restart"])
    every = read_english("Approve before every restart.")
    assert every.behaviour.accepts(["approve", "restart", "restart"])
    assert "one may serve for several" in every.doubts[0]
    scope = read_english("Restart at most once per shift.")
    assert scope.steps == ("restart",) and "'per shift' is read as: in each plan" in scope.doubts[0]


def test_two_people_do_not_become_one_step() -> None:
    with pytest.raises(NotationError, match="approve_loan is done by committee and by manager"):
        read_english("The committee must approve the loan before an offer is made. The manager must approve the loan.")
    assert len(read_english("The nurse signs the form before it is filed. The form must be signed.").steps) == 2
