"""What several tests draw."""

import pytest

from formal_llm import CFG, TaskPack


@pytest.fixture(scope="module")
def openagi() -> CFG:
    return TaskPack.load("openagi").cfg
