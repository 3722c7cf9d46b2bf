"""Names that look alike are warned of."""

import pytest

from formal_llm.automata.languages.spelling import looks_of, spelling_warnings


@pytest.mark.parametrize(
    "forms",
    [
        ("roll_back", "rollback", "Roll-back", "rolling back", "rollbacks", "rollBack"),
        ("restart", "Restarts", "restarted", "restarting"), ("log_in", "login", "logging_in"),
        ("process", "processes", "processing"), ("plan", "plans", "planned", "planning"), ("bake", "baking", "baked"),
    ],
)  # fmt: skip
def test_spacing_case_and_regular_endings_are_no_difference(forms: tuple[str, ...]) -> None:
    assert len({looks_of(form) for form in forms}) == 1
    assert len(spelling_warnings(forms, str)) == len(forms) - 1


def test_other_names_are_not_taken_for_one() -> None:
    names = ("approve", "approval", "wash", "watch", "step1", "step2", "get_order", "get_user", "test", "taste")
    assert spelling_warnings([*names, "a", "A", "as", "wash"], str) == []


def test_labels_are_compared_and_not_the_names_beside_them() -> None:
    labels = {"n1": "Roll back", "n2": "Rollback", "n3": "Roll back", "n4": "Deploy"}
    (warning,) = spelling_warnings(labels, labels.__getitem__)
    assert warning.startswith("Roll back and Rollback differ only in how they are spelled")
