from datetime import date, timedelta

from formal_llm.packs.travel.telling import summarize_query
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.given_cases import large_query, large_world

WORLD = large_world()
TRIP = Trip(large_query(), WORLD)
DAYS = tuple(date(2022, 3, 1) + timedelta(day) for day in range(3))


def asked(trip, word):
    moves = trip.moves(trip.follow_word(word))
    (question,) = {move.question for move in moves}
    return question, [move.text for move in moves]


def test_a_query_in_a_line():
    assert summarize_query(large_query()) == (
        "“seven days with the dog”\n"
        "A trip from Home to Somewhere: 7 days from 1 March 2022, 2 travellers, $6,000 for all, not shared room, "
        "pets allowed, Indian, French, Mexican and Italian food."
    )


def test_each_question_says_what_is_asked_and_what_is_left():
    word = TRIP.find_cheapest()
    spent = [TRIP.follow_word(word[:size]).spent // 100 for size in range(len(word))]
    assert asked(TRIP, ())[0] == "Which city to visit first?"
    assert asked(TRIP, word[:1])[0] == f"Which city to visit after {word[0]}?"
    question, nights = asked(TRIP, word[:3])
    assert question == f"How many nights in {word[0]}, {word[1]} and {word[2]}?"
    assert nights[0] == f"2 nights in {word[0]}, 2 nights in {word[1]}, 2 nights in {word[2]}"
    assert asked(TRIP, word[:4])[0] == f"Day 1: how to get from Home to {word[0]}? $6,000 left."
    question, beds = asked(TRIP, word[:8])
    assert question.startswith(f"Where to sleep in {word[0]}, ")
    assert question.endswith(f" ${6_000 - spent[8]:,} left.")
    assert all(" a night, " in bed for bed in beds)
    assert asked(TRIP, word[:9])[0] == f"Day 1: what to see in {word[0]}?"
    question, tables = asked(TRIP, word[:10])
    assert question == (
        f"Day 1: where to have dinner in {word[0]}? ${6_000 - spent[10]:,} left. "
        "Still wanted: Indian, French, Mexican and Italian food."
    )
    assert tables[-1] == "no dinner"
