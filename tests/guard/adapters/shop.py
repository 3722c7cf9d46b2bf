"""A shop whose tools stand under rules with a trap: after a draft nothing can be approved, and without that not paid.

To draft is legal by each rule alone, and a guard that looks one step ahead allows it; then the run cannot be finished.
"""

from __future__ import annotations

from formal_llm.guard import Call, Decision, Guard, GuardRules
from formal_llm.guard.live import Noted

TOOLS = ("approve", "draft", "pay", "look")

RULES = """
approve: approve
draft: draft
pay: pay
rule approval: approve before pay
rule order: never approve after draft
rule paid: at least 1 pay
"""

#: The same, and a person has to be asked about large amounts.
ASKING = (
    RULES
    + """
big: pay[amount > 100]
rule care ask: never big
"""
)


def guard(rules: str = RULES, *, severity: str = "") -> Guard:
    """The guard of the shop; with a severity, of all its rules."""
    if severity:
        rules = "\n".join(
            line.replace(":", f" {severity}:", 1) if line.startswith("rule") else line for line in rules.splitlines()
        )
    return Guard(GuardRules.from_string(rules), tools=TOOLS)


class Shop:
    """The tools: they write down what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def approve(self, order: int) -> str:
        """Approve an order."""
        self.done.append(f"approve {order}")
        return f"approved {order}"

    def draft(self, order: int) -> str:
        """Draft a letter about an order."""
        self.done.append(f"draft {order}")
        return f"drafted {order}"

    def pay(self, order: int, amount: int = 1) -> str:
        """Pay an order."""
        if amount < 0:
            raise ValueError("the amount is negative")
        self.done.append(f"pay {order} {amount}")
        return f"paid {order}"

    def look(self, order: int) -> str:
        """Look at an order."""
        self.done.append(f"look {order}")
        return f"order {order}"


class Person:
    """One who is asked, says the same each time, and remembers it."""

    def __init__(self, says: bool) -> None:
        self.says = says
        self.asked: list[Call] = []

    def __call__(self, call: Call, decision: Decision) -> bool:
        assert decision.action == "ask"
        self.asked.append(call)
        return self.says

    async def waits(self, call: Call, decision: Decision) -> bool:
        """The same, asked by a coroutine."""
        return self(call, decision)


class Record(list[Noted]):
    """A record of runs, which can be called to be told a line."""

    def __call__(self, line: Noted) -> None:
        self.append(line)

    @property
    def words(self) -> list[str]:
        """Each line in a word or two: what was told as it is, what was not behind a ``not``."""
        said = []
        for line in self:
            event = line.event
            name = "stop" if event is None else getattr(event, "tool", None) or getattr(event, "role", "")
            kind = "" if event is None else f"{type(event).__name__.lower()} "
            error = " failed" if getattr(event, "error", False) else ""
            said.append(f"{kind}{name}{error}" if line.told or event is None else f"not {name}")
        return said

    @property
    def called(self) -> list[str]:
        """The calls that were taken."""
        return [line.event.tool for line in self if isinstance(line.event, Call) and line.told]
