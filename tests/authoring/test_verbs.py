"""Forms of verbs."""

from __future__ import annotations

import pytest

from formal_llm.authoring.verbs import STATES, VERBS, base, gerund, participle


@pytest.mark.parametrize(
    ("form", "verb"),
    [
        ("checks", "check"), ("stopped", "stop"), ("baking", "bake"), ("applies", "apply"), ("paid", "pay"),
        ("reissued", "reissue"), ("goes", "go"), ("contains", "contain"), ("table", None), ("string", None),
    ],
)  # fmt: skip
def test_base(form: str, verb: str | None) -> None:
    assert base(form) == verb


def test_participles_of_verbs_that_are_not_known_are_guessed() -> None:
    assert participle("centrifuged") == "centrifuge" and participle("refrozen") == "refreeze"
    assert participle("frobnicated") == "frobnicate" and participle("put") == "put"
    assert participle("check") is None and participle("red") is None


def test_gerunds() -> None:
    assert gerund("rolling") == "roll" and gerund("evening") is None and gerund("roll") is None


def test_no_verb_is_listed_in_another_form() -> None:
    assert not VERBS & STATES
    assert not [verb for verb in VERBS if verb.endswith("ing") and verb[:-3] in VERBS and verb != "bring"]
