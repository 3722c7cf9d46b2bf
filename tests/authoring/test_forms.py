"""Sentences of their own build: the rules that they ask for, and those that may mean something else."""

from __future__ import annotations

import pytest

from formal_llm.authoring import read_english
from formal_llm.authoring.everyday import read_everyday
from formal_llm.authoring.names import NoName

pytestmark = pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("Boarding has to wait until the cabin has been cleaned.", ["before: clean_cabin < board"]),
        ("Icing the cake has to wait for the glaze to set.", ["before: glaze_set < ice_cake"]),
        ("Drying is a prerequisite for firing.", ["before: dry < fire"]),
        ("Firing requires that the pot has been dried.", ["before: dry_pot < fire"]),
        ("The pot has to be dried first; only then can it be fired.", ["before: dry_pot < fire_pot"]),
        ("An invoice that has not been approved may not be paid.", ["before: approve_invoice < pay_invoice"]),
        ("It is not permitted to sell bread that has been dropped.", ["never after: sell_bread < drop_bread"]),
        ("Guests who have checked out may not be readmitted.", ["never after: readmit_guests < guests_check_out"]),
        ("Whatever is locked out has to be unlocked later on.", ["followed: lock_out < unlock"]),
        ("Each rejected claim must be archived at some point afterwards.", ["followed: reject_claim < archive_claim"]),
        ("Two injections in a row are not allowed.", ["no two in a row: injection"]),
        ("The same sample may not be tested twice in a row.", ["in a row, never: test_sample"]),
        ("The sponsor is thanked last.", ["end with: thank_sponsor"]),
        ("At the end of each lesson the board is wiped.", ["end with: wipe_board"]),
        ("The pump and the fan are never both to be cleaned.", ["at most one of: clean_pump < clean_fan"]),
        (
            "Every approved return leads to a refund or a replacement, but never to both.",
            ["followed: approve_return < refund/replacement", "at most one of: refund < replacement"],
        ),
        (
            "Each boarding must be preceded by a check.",
            ["before: check < boarding", "between any two: boarding < check"],
        ),
        ("Each payment is directly preceded by an approval.", ["directly preceded: payment < approval"]),
        ("Bake the rye, then serve the slices warmed.", ["in this order, once each: bake_rye < serve_slices_warmed"]),
        ("First the rye baked, then the pan washed.", ["in this order, once each: bake_rye < wash_pan"]),
        ("Proof the rye, shape it, then bake it.", ["in this order, once each: proof_rye < shape_rye < bake_rye"]),
    ],
)  # fmt: skip
def test_what_is_asked(sentence: str, asked: list[str]) -> None:
    rules = read_everyday(sentence)
    assert [
        f"{one.pattern}: {' < '.join('/'.join(group) for groups in one.steps.values() for group in groups)}"
        for one in rules
    ] == asked


@pytest.mark.parametrize(
    "sentence",
    [
        "Entering the lab means signing the log first.",
        "The dough is kneaded, the oven preheated, and only then may the bread go in.",  # in which order?
        "The pilot and the co-pilot may not both leave the cockpit.",  # who does it is no part of a step
        "While the centrifuge is running, nobody may open the lid.",
        "The claim can be closed only by the supervisor.",
    ],
)
def test_what_may_mean_something_else_is_refused(sentence: str) -> None:
    with pytest.raises(NoName):
        read_everyday(sentence)


def test_no_mark_of_a_simplified_sentence_gets_into_a_name() -> None:
    text = "Should an alarm sound, work is suspended and may not resume until the guard has given the all-clear."
    read = read_english(text)
    assert read.steps == ("alarm_sound", "suspend_work", "give_all-clear", "work_resume")
    assert read.behaviour.accepts(["alarm_sound", "suspend_work", "give_all-clear", "work_resume"])
    assert not read.behaviour.accepts(["alarm_sound", "suspend_work", "work_resume"])
