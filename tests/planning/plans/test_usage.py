"""Usage: sums, and the part that the answerers reported."""

from __future__ import annotations

import copy
import pickle

from formal_llm import Usage
from formal_llm.llms import TokenUsage


def test_usages_add_up_field_by_field() -> None:
    one = Usage(3, 1, 2, 1, 4, 100, 20, 0.5, 40, 8, 0.25)
    both = one + Usage(questions=1, seconds=1.5)
    assert both == Usage(4, 1, 2, 1, 4, 100, 20, 2.0, 40, 8, 0.25)  # a cost that is not known is none
    assert (Usage() + Usage()).cost is None
    assert sum([one, one, one], Usage()).cost == 0.75


def test_what_the_answerers_reported() -> None:
    assert Usage(3, 1, 2, 1, 4, 100, 20, 0.5, 40, 8).token_usage == TokenUsage(4, 100, 20, 40, 8)


def test_usage_is_a_value() -> None:
    usage = Usage(questions=3, cost=0.5)
    for same in (pickle.loads(pickle.dumps(usage)), copy.deepcopy(usage)):
        assert same == usage
        assert hash(same) == hash(usage)
