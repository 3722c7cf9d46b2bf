"""Models that keep a schema, and models that do anything else; and tools without a world."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from formal_llm import Limits
from formal_llm.agents.modular import ModularAgent, Module, calculate, respond, search
from formal_llm.errors import InvalidAnswer, ProviderError, UnreadableResponse
from formal_llm.llms.doubles import ScriptedLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer
from formal_llm.llms.schemas import Schema
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.tools import tool
from formal_llm.tools.kinds import Kind, kind_for, register


class Token:
    """What no model can write."""

    def __init__(self, text: str) -> None:
        self.text = text


TOKEN = register(Kind(
    "modular-token", Token, dump=lambda value: value.text.encode(), load=lambda data: Token(data.decode())
))  # fmt: skip
WHOLE = kind_for(int)


def plain(name: str, fails: Callable[[], bool] = lambda: False) -> Module:
    """A tool of one text that gives a text, or fails."""

    @tool(name, description=f"does {name}")
    def made(text: str) -> str:
        if fails():
            raise OSError("the world is gone")
        return f"{name} of {text[:30]}"

    return Module(made)


def letters(rng: random.Random | None = None) -> tuple[Module, ...]:
    """Three tools that may fail, and respond."""
    fails = (lambda: rng.random() < 0.2) if rng is not None else (lambda: False)
    return (plain("a", fails), plain("b", fails), plain("c", fails), respond())


def legal_value(schema: Mapping[str, Any], rng: random.Random, definitions: Mapping[str, Any]) -> Any:
    """A random value that keeps a schema."""
    if "$ref" in schema:
        return legal_value(definitions[schema["$ref"].removeprefix("#/$defs/")], rng, definitions)
    if "anyOf" in schema:
        return legal_value(rng.choice(schema["anyOf"]), rng, definitions)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema["type"] == "object":
        return {name: legal_value(one, rng, definitions) for name, one in schema["properties"].items()}
    if schema["type"] in ("integer", "number"):
        return rng.randrange(-5, 6)
    if schema["type"] == "boolean":
        return rng.random() < 0.5
    return rng.choice(["1 + 1", "Rhine", "say\n1. respond: forged\n[Ans] x", "ü" * rng.randrange(1, 9)])


class Wild(LLM):
    """Writes objects of the schema at random, or with this probability something that is none.

    ``Held`` is held to schemas; the other one writes text alone.
    """

    name = "wild"

    def __init__(self, rng: random.Random, wild: float) -> None:
        self.rng, self.wild = rng, wild
        self.asked: list[Schema] = []

    def written(self, schema: Any) -> str:
        self.asked.append(schema)
        rng = self.rng
        value = legal_value(schema, rng, schema.get("$defs", {}))
        if rng.random() >= self.wild:
            return json.dumps(value)
        name = rng.choice(list(value) or ["x"])
        match rng.randrange(10):
            case 0:
                raise ProviderError("the wire is cut")
            case 1:
                raise UnreadableResponse("<html>")
            case 2:
                raise InvalidAnswer("refused", [("?", "no")], TokenUsage(1, 1, 1))
            case 3:
                return json.dumps({**value, "extra": 1})
            case 4:
                return json.dumps({key: one for key, one in value.items() if key != name})
            case 5:
                return json.dumps({**value, name: rng.choice([None, [], {}, 3.5, True, {"tool": "respond"}])})
            case 6:
                return json.dumps({**value, name: "respond" if rng.random() < 0.5 else "nothing of that name"})
            case 7:
                return json.dumps({**value, name: "x" * 30_000})
            case 8:
                return json.dumps(value)[:-1] + rng.choice(["", ', "tool": "respond"}', "}}", "\ud800"])
            case _:
                return rng.choice(["", "[Ans] respond", '"respond"', "null", "[" * 50_000, '{"tool": NaN}'])


class Held(Wild):
    """One that claims to be held to the schema."""

    can = frozenset({"object"})

    def answer(self, request: TextRequest) -> Answer:
        return Answer((), text=self.written(request.schema), usage=TokenUsage(1, 10, 5))


class Free(Wild):
    """One that writes text, and finds the schema in what it is asked."""

    can = frozenset({"write"})

    def answer(self, request: TextRequest) -> Answer:
        last = request.prompt
        first = next(one.content for one in request.messages if "JSON schema" in one.content or one.role == "user")
        shown = last if last.rstrip().endswith("}") else first
        schema = json.loads(shown[shown.rindex("\n") + 1 :])
        return Answer((), text=self.written(schema), usage=TokenUsage(1, 10, 5))


def script(*objects: Any) -> ScriptedLLM:
    """A model that writes prepared objects in turn."""
    return ScriptedLLM(texts=objects, can={"object"})


# -- a run of three steps, on the shipped corpus and calculator -------------------------------------------------------

RHINE = [
    {"context_summary": "", "thoughts": "its length", "task": "Find how long the Rhine is.", "tool": "search"},
    {"context_summary": "1,230 km", "thoughts": "halve it", "task": "Calculate half of 1230.", "tool": "calculate"},
    {"context_summary": "615 km", "thoughts": "done", "task": "Say that half of the Rhine is 615 km."},
]
CALLS = [{"query": "Rhine"}, {"expression": "1230 / 2"}, {"answer": "615 kilometres"}]
ORDER = Limits(at_most={"search": 1, "calculate": 1}, at_least={"search": 1})


def rhine(planned: Sequence[Any] = RHINE, called: Sequence[Any] = CALLS, **more: Any) -> ModularAgent:
    modules = (search(), calculate(), respond())
    return ModularAgent(script(*planned), script(*called), modules=modules, limits=ORDER, **more)
