"""One of each kind of value, made anew by every call, and what is done with it."""

from formal_llm import (
    CFG,
    PDA,
    Behaviour,
    BehaviourState,
    Flowchart,
    FlowEdge,
    FlowNode,
    Limits,
    Production,
    SumLimit,
    Symbol,
    Transition,
)
from formal_llm.automata import Configuration, Stack
from formal_llm.automata.models.formula import ANY, Atom, eventually, next_, not_, or_, until
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.product import product
from formal_llm.automata.models.symbols import Diagnostic
from formal_llm.pictures.picture import Arrow, Box, Picture
from tests.automata.charts import RETURNS
from tests.automata.packing import PACKING

GRAMMAR = '%limit 2 a\n%limit cost <= 3\nS "start" -> a S "wrap" | some(a, b) | T\nT -> a | b\na "the a" cost=1.5'


def limits():
    return Limits({"a": 2, "b": None}, {"a": 1}, 3, (SumLimit("cost", 3, 0.5),))


def no_b_after_a():
    loops = [("x", "a", None, "y"), ("x", "b", None, "x"), ("y", "a", None, "y")]
    return PDA(loops, start="x", accepting="xy", symbols={"a": Symbol("A")}, name="no b after a")


def formula():
    return next_("a", until(or_("b", not_(eventually("c"))), ANY, 1, 3))


#: Makers of values, all of them different from each other.
VALUES = {
    "a grammar": lambda: CFG.from_string(GRAMMAR),
    "a grammar without limits": lambda: CFG.from_string(GRAMMAR).with_limits(Limits()),
    "the automaton of a grammar": lambda: PDA.from_cfg(CFG.from_string(GRAMMAR)),
    "an automaton with limits": lambda: PDA.from_string(PACKING),
    "the automaton of a grammar with its limits": lambda: PDA.from_cfg(CFG.from_string(GRAMMAR)).with_limits(limits()),
    "an automaton that knows more terminals": lambda: no_b_after_a().with_limits(Limits({"c": 0}), ["c"]),
    "an intersection": lambda: CFG.from_string(GRAMMAR) & Behaviour("b", ["a", "b"], until("b", "a")),
    "a finite automaton": no_b_after_a,
    "a product": lambda: product(PDA.from_cfg(CFG.from_string(GRAMMAR)), no_b_after_a()),
    "a product with limits": lambda: product(
        PDA.from_string(PACKING), PDA([(0, n, None, 0) for n in ("open", "pack", "close")], start=0, accepting=[0])
    ),
    "a flowchart": lambda: Flowchart.from_string(str(RETURNS)),
    "a filled flowchart": lambda: Flowchart.from_string(str(RETURNS)).fill({"limit": 14}),
    "the automaton of a flowchart": lambda: Flowchart.from_string(str(RETURNS)).pda(),
    "a behaviour": lambda: Behaviour("b", [BehaviourState("a", "[A]", frozenset(["env-input"])), "b", "c"], formula()),
    "a shipped behaviour": lambda: Behaviour.load("react"),
    "limits": limits,
    "no limits": Limits,
    "a sum": lambda: SumLimit("cost", 3, 0.5),
    "a bound": lambda: limits().bounds("ab", {"a": {"cost": 1}, "b": {}})[0],
    "a bound on a sum": lambda: Bound({"a": 3, "b": 1}, 0, 6, "%limit cost <= 3"),
    "a formula": formula,
    "a name": lambda: Atom(name="a"),
    "a symbol": lambda: Symbol("a", "the letter", {"cost": 1.5, "kg": 2}),
    "a symbol without numbers": lambda: Symbol("a"),
    "a production": lambda: Production("S", ("a", "S"), "wrap"),
    "a transition": lambda: Transition("p", "a", None, "q", ("X",), "go", Production("S", ("a",)), "Where?", True),
    "a state": lambda: BehaviourState("a", "[A]", frozenset(["env-input"])),
    "a node": lambda: FlowNode("a", "Do it", "stadium"),
    "an arrow": lambda: FlowEdge("a", "b", "yes"),
    "a warning": lambda: Diagnostic("unused", "a", "a is not used", "leave it out"),
    "a stack": lambda: Stack.of("X", "Y"),
    "a configuration": lambda: Configuration("p", Stack.of("X", "Y")),
    "a picture": lambda: Picture((Box("a", "A", "tool", ("x",)), Box("b", "B", "point")), (Arrow("a", "b", "go"),)),
    "a picture of a grammar": lambda: CFG.from_string(GRAMMAR).picture,
}  # fmt: skip


def use(value):
    """Ask a value all that it may keep for later."""
    for name in dir(type(value)):
        if not name.startswith("_"):
            attribute = getattr(value, name)
            if callable(attribute) and name in ("accepts", "to_networkx", "to_mermaid", "walk", "start", "next_states"):
                attribute(("a",)) if name == "accepts" else attribute()
    hash(value)
    if isinstance(value, CFG):
        PDA.from_cfg(value)
    return str(value)
