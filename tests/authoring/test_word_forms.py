"""Forms of one name."""

from __future__ import annotations

import pytest

from formal_llm.authoring.word_forms import (
    are_related_words,
    singularize_noun,
    spelling_key,
    stem_name,
)


@pytest.mark.parametrize(
    "forms",
    [
        ("roll_back", "rollback", "Roll-back", "rolled_back", "rolling back", "rollbacks", "rollBack"),
        ("restart", "Restarts", "restarted", "perform_restart", "carry_out_restart"),
        ("log_in", "login", "logging_in"), ("agree", "agreed"), ("pay_invoice", "paid_invoice", "paying_invoices"),
        ("run_health_check", "health_check", "Health check"),
    ],
)  # fmt: skip
def test_forms_of_one_name_have_one_key(forms: tuple[str, ...]) -> None:
    assert len({spelling_key(form) for form in forms}) == 1


def test_other_names_have_other_keys() -> None:
    names = ("approve", "approval", "wash", "watch", "step1", "step2", "get_order", "get_user", "test", "taste")
    assert len({spelling_key(name) for name in names}) == len(names)


def test_regular_plurals_and_stems() -> None:
    assert [singularize_noun(word) for word in ("boxes", "queries", "glass", "bus")] == ["box", "query", "glass", "bus"]
    assert stem_name("ironing") == stem_name("iron") == stem_name("ironed")
    assert stem_name("cancelling") == stem_name("cancel")


def test_related_words() -> None:
    assert (
        are_related_words("approve", "approval")
        and are_related_words("verif", "verification")
        and are_related_words("ab", "ab")
    )
    assert not are_related_words("contract", "contact") and not are_related_words("pay", "pat")
