"""What may mean two things is refused. What each pattern means is tried in test_patterns.py."""

from __future__ import annotations

import pytest

from formal_llm.authoring import read_english
from formal_llm.errors import NotationError, NotUnderstood


def test_never_both_or_neither() -> None:
    with pytest.raises(NotationError, match="never both a and b"):
        read_english("Never wash and dry.")
    assert not read_english("Never wash or dry. Iron is allowed.").behaviour.accepts(["wash"])


@pytest.mark.parametrize(
    "sentence",
    [
        "Dry after wash.",  # only after it, or always after it
        "Every third wash is followed by dry.",
        "Wash unless clean.",
        "Before it, wash.",
        "Wash before dry and iron after dry.",
    ],
)
def test_sentences_that_may_mean_two_things_are_not_understood(sentence: str) -> None:
    with pytest.raises(NotUnderstood):
        read_english(sentence)


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize(
    "sentence",
    [
        "Dry only after wash.", "No dry before wash.", "Never dry before wash.", "Before every dry, wash.",
        "Dry needs wash first.",
        "Every dry must be preceded by a wash.", "Dry may only happen after wash.",
        "Dry is only allowed after wash.",
        "Only after wash may dry be done.",
        "If dry happens, wash must happen first.", "Washing must come before drying.",
        "You must not dry before you wash.", "Do not dry before the wash!", "Wash prior to every dry.",
    ],
)  # fmt: skip
def test_ways_to_say_before(sentence: str) -> None:
    (clause,) = read_english(sentence).clauses
    assert clause.pattern == "before"
    first, then = sorted(clause.steps, key=lambda name: not name.startswith("wash"))
    behaviour = read_english(sentence).behaviour
    assert behaviour.accepts([first, then, first]) and behaviour.accepts([])
    assert not behaviour.accepts([then, first])
