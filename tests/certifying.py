"""Every plan of a walk in these tests is proved to somebody who trusts nothing of ours.

The checker of certificates is loaded as a file by itself, as a stranger would use it. :func:`watch` puts it behind
``Walk.plan``, where every plan comes by that a test looks at: a plan that it refuses is an error there.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from formal_llm import Plan, Walk
from formal_llm.planning.plans.certificates import compiled

CHECKER = Path(__file__).parents[1] / "formal_llm" / "planning" / "checking" / "certificate_checker.py"
_loaded = runpy.run_path(str(CHECKER))
check, Refused = _loaded["check"], _loaded["Refused"]

#: How many plans are proved in one test, so that tests of thousands of plans take no longer for it.
MOST = 40
#: How many plans were proved: in this test, and in all.
counted = {"test": 0, "all": 0}


def stranger(data: Any) -> Any:
    """What comes out of a file that data is written to."""
    return json.loads(json.dumps(data))


def prove(plan: Plan, rules: Any = None) -> str:
    """What the checker says of a plan; Refused is raised where it proves nothing."""
    source = rules if rules is not None else plan._run()[0]  # type: ignore[misc]
    found: str = check(stranger(compiled(source)), stranger(plan.certificate(rules)))
    return found


def watch() -> None:
    """From now on prove what ``Walk.plan`` gives."""
    plain = Walk.plan.fget
    assert plain is not None

    def proved(walk: Walk) -> Plan:
        plan: Plan = plain(walk)
        # The rules of an automaton of one's own are code: there is no certificate of them.
        if counted["test"] < MOST and walk.table.lookahead.pda is not None:
            counted["test"] += 1
            counted["all"] += 1
            said = prove(plan)
            assert said == f"proved: this plan follows the rules: {' '.join(plan.word)}"
        return plan

    Walk.plan = property(proved, doc=Walk.plan.__doc__)  # type: ignore[assignment]
