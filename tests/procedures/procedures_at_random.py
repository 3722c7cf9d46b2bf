"""Random procedures over yes-or-no checks, and an oracle that makes every check it may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from formal_llm.guard.rules.expressions import FieldPath
from formal_llm.procedures import ConditionNeed, Fact, FactNeed, NeedGroup, NotNeed, Procedure
from formal_llm.procedures.procedure import NO_NEED, Need, ProcedureTool, ToolParameter
from formal_llm.procedures.terms import CallSucceeds, CallValue

X = (FieldPath(("x",)),)


@dataclass(frozen=True)
class World:
    """A procedure, and what each tool returns."""

    procedure: Procedure
    answers: Mapping[str, bool]


def _leaf(name: str, number: int) -> Need:
    return (FactNeed(f"fact_{name}", X), ConditionNeed(CallValue(name, X)), NotNeed(FactNeed(f"fact_{name}", X)))[
        number
    ]


@st.composite
def needs(draw: st.DrawFn, checks: list[str], actions: list[str], depth: int = 2) -> Need:
    """A need over facts of some checks and actions."""
    names = [*checks, *actions]
    if not names:
        return NO_NEED
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from(names))
        number = draw(st.integers(0, 2))
        return _leaf(name, 0 if name in actions and number == 1 else number)
    grouping = draw(st.sampled_from(["all of", "any of", "in order", "none of", "first of"]))
    items = draw(st.lists(needs(checks, actions, depth - 1), min_size=1, max_size=3))
    return NeedGroup(grouping, tuple(item for item in items if item != NO_NEED) or (_leaf(names[0], 0),))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A procedure with up to four checks, two actions that establish facts, and one goal."""
    checks: list[str] = []
    actions: list[str] = []
    tools: dict[str, ProcedureTool] = {}
    facts: dict[str, Fact] = {}
    for number in range(draw(st.integers(1, 5))):
        acts = draw(st.integers(0, 3)) == 0
        name = f"{'act' if acts else 'check'}{number}"
        need = draw(needs(checks, actions, 1)) if draw(st.booleans()) else NO_NEED
        cost = float(draw(st.integers(1, 3)))
        changes = () if acts else None
        tools[name] = ProcedureTool(name, (ToolParameter("x"),), acts, need=need, cost=cost, changes=changes)
        call = CallValue(name, X)
        facts[f"fact_{name}"] = Fact(f"fact_{name}", ("x",), ConditionNeed(CallSucceeds(call) if acts else call))
        (actions if acts else checks).append(name)
    goal = draw(needs(checks, actions))
    tools["goal"] = ProcedureTool("goal", (ToolParameter("x"),), True, is_goal=True, need=goal)
    answers = {name: draw(st.booleans()) for name in tools} | {"goal": True}
    return World(Procedure(tools, facts), answers)


def is_allowed(world: World) -> bool | None:
    """Whether the goal may be called once everything has been looked up that may be; None if that is not determined.

    The checks are made in all rounds, with two-valued logic over what is known; a fact of an action is established by
    that action only where it is needed to hold, so worlds in which an action is also needed not to hold are left out.
    """
    made: set[str] = set()
    while True:
        more = {
            name
            for name, tool in world.procedure.tools.items()
            if name != "goal" and name not in made and judge(world, tool.need, made, wanted=True)
        }
        if not more:
            break
        made |= more
    goal = world.procedure.tools["goal"].need
    return judge(world, goal, made, wanted=True)


def judge(world: World, need: Need, made: set[str], *, wanted: bool) -> bool:
    """Whether it is known that a need holds (or, unless it is wanted, that it does not)."""
    match need:
        case NotNeed(inner):
            return judge(world, inner, made, wanted=not wanted)
        case NeedGroup("none of", items):
            return judge(world, NeedGroup("any of", items), made, wanted=not wanted)
        case NeedGroup(grouping, items):
            parts = [judge(world, item, made, wanted=wanted) for item in items]
            return any(parts) if (grouping == "any of") is wanted else all(parts)
        case FactNeed(fact, _):
            return judge(world, world.procedure.facts[fact].need, made, wanted=wanted)
        case ConditionNeed(CallSucceeds(CallValue(tool, _)) | CallValue(tool, _)):
            return tool in made and world.answers[tool] is wanted
    raise AssertionError(need)
