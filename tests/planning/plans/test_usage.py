"""Usage: sums, and the part that the answerers reported."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

from formal_llm import Usage
from formal_llm.automata.lookahead.verdicts import TALLY
from formal_llm.llms import TokenUsage
from formal_llm.planning.plans.usage import Verdicts


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


def test_verdicts_are_counted_and_read_back() -> None:
    one = Usage(questions=1, verdicts=Verdicts(filter=5, search=2, unknown=1))
    assert (one + one).verdicts == Verdicts(filter=10, search=4, unknown=2)
    assert Usage(**json.loads(json.dumps(asdict(one)))) == one
    assert Usage(questions=1).verdicts == Verdicts()  # as older versions wrote it
    assert Verdicts.unpack(one.verdicts.pack()) == one.verdicts
    packed = 5 * TALLY["filter"] + 2 * TALLY["search"] + 3 * TALLY["linear argument"] + 4 * TALLY["integer program"]
    assert Verdicts.unpack(packed + TALLY["time"]) == Verdicts(5, 2, 3, 4, 1)
