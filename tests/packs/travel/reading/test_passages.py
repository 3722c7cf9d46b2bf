from formal_llm.packs.travel.reading.passages import Passage, protect_signs


def spans(text: str) -> list[str]:
    passage = Passage(text)
    return [text[begin:end].strip() for begin, end in passage.clauses]


def test_clauses_end_at_commas_and_full_stops_but_not_in_numbers_or_names() -> None:
    assert spans("From St. Alder, for $1,700.50. Two of us; no more!") == [
        "From St. Alder", "for $1,700.50", "Two of us", "no more",
    ]  # fmt: skip
    assert len(protect_signs("St. A, 1.5")) == len("St. A, 1.5")


def test_words_that_are_left_over_go_together_where_nothing_between_them_was_understood() -> None:
    passage = Passage("alpha beta gamma delta pi zeta kappa rho iota nu")
    for word in ("delta", "kappa"):
        begin = passage.text.index(word)
        passage.mark_spans((begin, begin + len(word)))
    assert list(passage.left_over()) == ["alpha beta gamma", "pi zeta", "rho iota nu"]


def test_what_is_left_over() -> None:
    passage = Passage("Please plan a trip to Oriel for us, with a pool and 7 lamps, thanks")
    passage.mark_spans((22, 27))
    assert list(passage.left_over()) == ["with a pool and 7 lamps"]
    passage.mark_spans((passage.text.index("pool"), passage.text.index("pool") + 4))
    assert list(passage.left_over()) == ["7 lamps"]
    passage.mark_spans((0, len(passage.text)))
    assert list(passage.left_over()) == []


def test_a_sentence_of_common_words_that_wishes_for_something_is_left_over() -> None:
    wishes = ["A night more would be nice.", "We would like to be there before dinner.", "More nights, please."]
    for wish in wishes:
        assert set(Passage(wish).left_over()) == {wish[:-1]}
    for other in ("Could you please help me?", "Please help me plan this.", "This is our trip."):
        assert list(Passage(other).left_over()) == []


def test_a_wish_of_which_a_part_was_understood_is_not_left_over() -> None:
    passage = Passage("A night more would be nice, and we need it.")
    passage.mark_spans((0, 12))
    assert list(passage.left_over()) == ["and we need it"]
    passage.mark_spans((28, 35))
    assert list(passage.left_over()) == []
