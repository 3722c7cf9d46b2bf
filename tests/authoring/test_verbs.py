"""Forms of verbs."""

from __future__ import annotations

import pytest

from formal_llm.authoring.verbs import STATES, VERBS, base_form, gerund_base, participle_base


@pytest.mark.parametrize(
    ("form", "verb"),
    [
        ("checks", "check"), ("stopped", "stop"), ("baking", "bake"), ("applies", "apply"), ("paid", "pay"),
        ("reissued", "reissue"), ("goes", "go"), ("contains", "contain"), ("table", None), ("string", None),
    ],
)  # fmt: skip
def test_base(form: str, verb: str | None) -> None:
    assert base_form(form) == verb


def test_participles_of_verbs_that_are_not_known_are_guessed() -> None:
    assert participle_base("centrifuged") == "centrifuge" and participle_base("refrozen") == "refreeze"
    assert participle_base("frobnicated") == "frobnicate" and participle_base("put") == "put"
    assert participle_base("check") is None and participle_base("red") is None


def test_gerunds() -> None:
    assert gerund_base("rolling") == "roll" and gerund_base("evening") is None and gerund_base("roll") is None


def test_no_verb_is_listed_in_another_form() -> None:
    assert not VERBS & STATES
    assert not [verb for verb in VERBS if verb.endswith("ing") and verb[:-3] in VERBS and verb != "bring"]
