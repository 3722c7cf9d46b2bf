"""Steps in clauses."""

from __future__ import annotations

import pytest

from formal_llm.authoring.events import DescribesState, EventReader
from formal_llm.authoring.names import NoName, Unclear


@pytest.mark.parametrize(
    ("clauses", "name"),
    [
        (
            ("check the plate", "checking the plate", "the plate has been checked", "the plate is checked by the chef",
             "the head chef has checked the plate", "the chef checks the plate", "head chef checks the plate",
             "having checked the plate", "to check the plate", "the chef VERB check the plate"), "check_plate",
        ),
        (("roll back the service", "roll the service back", "the service was rolled back"), "roll_back_service"),
        (("put the bread in", "the bread was put in"), "put_in_bread"),
        (("the timer has rung", "the timer rings"), "timer_ring"),
        (("failover has begun", "begin failover", "failover begins"), "begin_failover"),
        (("the pan goes on the heat",), "pan_go_on_heat"),
        (("the health check is complete", "a health check", "the health check takes place"), "health_check"),
        (("rinse raw chicken in the sink", "raw chicken is rinsed in the sink"), "rinse_raw_chicken_in_sink"),
        (("the goods have been paid for",), "pay_for_goods"),
        (('"Wash up"',), "Wash_up"),
    ],
)  # fmt: skip
def test_one_step_in_many_clauses(clauses: tuple[str, ...], name: str) -> None:
    assert {EventReader().read(clause).name for clause in clauses} == {name}


@pytest.mark.parametrize("clause", ["the guest is under 18", "the amount exceeds the limit", "it has a nut allergy"])
def test_how_things_are_is_no_step(clause: str) -> None:
    with pytest.raises(DescribesState, match="describes how things are"):
        EventReader().read(clause)


@pytest.mark.parametrize(
    "clause",
    ["it", "approval of its own", "the plate is checked again", "for routine requests filing", "carefully pour it",
     "checked by the chef", "wait 5 minutes", "the incident stays open until someone verifies the rate",
     "anyone older", ""],
)  # fmt: skip
def test_a_word_that_is_left_over_is_not_made_part_of_a_name(clause: str) -> None:
    with pytest.raises(NoName):
        EventReader().read(clause)


def test_pronouns_mean_the_one_thing_that_was_named() -> None:
    reader = EventReader()
    reader.read("taste the sauce")
    assert reader.read("season it").name == "season_sauce"
    reader.read("cut the bread")
    with pytest.raises(Unclear, match="say what 'it' is"):
        reader.read("serve it")


def test_of_several_things_a_pronoun_means_the_one_of_its_number() -> None:
    reader = EventReader()
    reader.read("wash the cups")
    reader.read("heat the oven")
    assert (reader.read("clean it").name, reader.read("dry them").name) == ("clean_oven", "dry_cups")


def test_who_does_it_is_kept_beside_the_name() -> None:
    reader = EventReader()
    reader.read("the plate is checked by the head chef")
    reader.read("the waiter VERB check the plate")
    assert reader.agents == {"check_plate": {"head chef", "waiter"}}
    for clause in ("the dose was checked by two nurses", "a second nurse VERB check the dose"):
        with pytest.raises(NoName):
            reader.read(clause)
