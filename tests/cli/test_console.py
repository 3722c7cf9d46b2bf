"""What is said of errors at the command line."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Budget, BudgetExceeded, Planner, WeightedLLM
from formal_llm.cli.console import said_of
from formal_llm.errors import FormalLLMError, InfiniteLanguage, Undecided


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Undecided("not counted within the budget; raise max_states"),
            "not counted within the budget; raise --max-states",
        ),
        (InfiniteLanguage("give a bound on their length (max_length)"), "give a bound on their length (--max-length)"),
        (InfiniteLanguage("infinitely many; count words instead"), "infinitely many; count words instead (--of words)"),
        # What somebody named so stays as it is.
        (FormalLLMError("there is no terminal max_states"), "there is no terminal max_states"),
    ],
)
def test_arguments_are_said_as_options(error: Exception, said: str) -> None:
    assert said_of(error) == said


def test_a_spent_budget_names_its_option() -> None:
    cfg = CFG.from_string("Trip -> walk Trip | train Trip | home")
    with pytest.raises(BudgetExceeded) as caught:
        Planner(cfg, WeightedLLM(3), search="best-first", budget=Budget(questions=1)).plan("t")
    assert said_of(caught.value) == (
        "the budget of 1 questions is used up; a plan of 1 terminals is finished, there may be a more probable one; "
        "raise it with --max-questions"
    )
