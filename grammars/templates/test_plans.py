"""The rules of NAME keep their examples; and whatever is answered, each plan keeps the rules."""

from pathlib import Path

import pytest

from formal_llm import TaskPack, verify
from formal_llm.authoring import Example, load_plan_examples

HERE = Path(__file__).parent
PACK = TaskPack.load(str(HERE))
EXAMPLES = load_plan_examples(HERE / PACK.data["rules"], PACK.source)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_each_example_is_kept(example: Example) -> None:
    """What is allowed is a plan, and what is not allowed is none."""
    assert example.satisfied_by(PACK.source)


@pytest.mark.parametrize("seed", range(20))
def test_each_plan_keeps_the_rules(seed: int) -> None:
    """Random answers make a valid plan, too."""
    plan = PACK.planner(f"test:random={seed}").plan(PACK.tasks[0])
    assert verify(plan, PACK.source)
