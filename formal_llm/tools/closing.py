"""Any JSON schema in the part of JSON Schema that all providers can hold a model to (:mod:`formal_llm.llms.schemas`).

There an object has exactly its properties, all of them required. So what is open is written in another form:

====================================  ===================================================================
in the schema                         as it is written
====================================  ===================================================================
a property that may be left out       null, which stands for its default
a table with any keys                 a list of ``{"key": ..., "value": ...}``
any value; what contains itself       JSON as a text
====================================  ===================================================================

:func:`open_value` undoes it. What the closed schema cannot express, such as patterns, whoever reads the value checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from formal_llm.llms.schemas import closed, problem_in

_Schema: TypeAlias = Mapping[str, Any]
_BOUNDS = {
    "string": ("minLength", "maxLength"), "integer": ("minimum", "maximum"), "number": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}  # fmt: skip
_NULL = {"type": "null"}


def close_schema(schema: _Schema) -> dict[str, object]:
    """Return the schema of an object in the part that all providers know, without definitions."""
    return _Closing(schema).close_object(schema, ())


def open_value(value: object, schema: _Schema) -> object:
    """Return what was written by ``close_schema(schema)`` as it is written by the schema itself."""
    return _Closing(schema).open_object(value, schema, ())


class _Closing:
    """A schema with its definitions. ``path`` names those that contain the place."""

    def __init__(self, schema: _Schema) -> None:
        self._definitions = {
            f"#/{key}/{name}": one for key in ("$defs", "definitions") for name, one in schema.get(key, {}).items()
        }

    def _resolve(self, schema: _Schema, path: tuple[str, ...]) -> tuple[_Schema, tuple[str, ...]]:
        """Return what a schema refers to, described by itself; of what contains itself, that of any value."""
        while "$ref" in schema:
            name = str(schema["$ref"])
            found = {"description": name.rpartition("/")[2]} if name in path else self._definitions.get(name, {})
            schema = {**found, **{key: one for key, one in schema.items() if key == "description"}}
            path = (*path, name)
        return schema, path

    def close(self, schema: _Schema, path: tuple[str, ...]) -> dict[str, Any]:
        schema, path = self._resolve(schema, path)
        made = self._close_resolved(schema, path)
        about = " ".join([*_texts(schema.get("description")), *(f"({one})" for one in _texts(schema.get("format")))])
        return {**made, "description": f"{about} {made.get('description', '')}".strip()} if about else made

    def _close_resolved(self, schema: _Schema, path: tuple[str, ...]) -> dict[str, Any]:
        if (ways := list(_alternatives(schema))) != [schema]:
            made = [part for way in ways for part in _parts(self.close(way, path))]
            made = [part for place, part in enumerate(made) if part not in made[:place]]
            return made[0] if len(made) == 1 else {"anyOf": made}
        if "enum" in schema:
            names = {type(one): "string" if isinstance(one, str) else "integer" for one in schema["enum"]}
            return {**({"type": next(iter(names.values()))} if len(names) == 1 else {}), "enum": list(schema["enum"])}
        kind = schema.get("type")
        if kind == "object" and _is_table(schema):
            key = self.close(schema.get("propertyNames", {"type": "string"}), path)
            pair = closed({"key": key, "value": self.close(_table_values(schema), path)})
            return {"type": "array", "items": pair}
        if kind == "object":
            return self.close_object(schema, path)
        if kind == "array":
            places = schema.get("prefixItems")
            items = self.close({"anyOf": places} if places else schema.get("items", {}), path)
            return {"type": kind, "items": items, **_bounds(schema)}
        if kind in ("string", "integer", "number", "boolean", "null"):
            return {"type": kind, **_bounds(schema)}
        return {"type": "string", "description": "(any value, as JSON)"}

    def close_object(self, schema: _Schema, path: tuple[str, ...]) -> dict[str, object]:
        return closed({name: self._close_property(schema, name, path) for name in schema.get("properties", {})})

    def _close_property(self, schema: _Schema, name: str, path: tuple[str, ...]) -> dict[str, Any]:
        one = schema["properties"][name]
        made = self.close(one, path)
        if name in schema.get("required", ()):
            return made
        about = made.pop("description", "")
        default = json.dumps(one["default"]) if one.get("default") is not None else ""
        if problem_in(None, made) is None:  # null is a value of its own
            hint = f"(by default {default})" if default else ""
        else:
            hint = f"(null for {default})" if default else "(null to leave it out)"
            made = {"anyOf": [*_parts(made), _NULL]}
        return {**made, "description": f"{about} {hint}".strip()} if about or hint else made

    # -- back --------------------------------------------------------------------------------------------------------

    def open(self, value: object, schema: _Schema, path: tuple[str, ...]) -> object:
        schema, path = self._resolve(schema, path)
        if (ways := list(_alternatives(schema))) != [schema]:
            way = next((one for one in ways if problem_in(value, self.close(one, path)) is None), None)
            return value if way is None else self.open(value, way, path)
        kind = schema.get("type")
        if kind == "object" and not _is_table(schema):
            return self.open_object(value, schema, path)
        if kind == "object" and isinstance(value, list):
            inner = _table_values(schema)
            pairs = [
                (one["key"], one["value"]) for one in value if isinstance(one, dict) and set(one) == {"key", "value"}
            ]
            return {str(key): self.open(one, inner, path) for key, one in pairs} if len(pairs) == len(value) else value
        if kind == "array" and isinstance(value, list):
            places: Sequence[_Schema] = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
            return [self.open(one, by, path) for one, by in zip(value, places, strict=False)] + value[len(places) :]
        if kind is None and "enum" not in schema and isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        return value

    def open_object(self, value: object, schema: _Schema, path: tuple[str, ...]) -> object:
        if not isinstance(value, Mapping):
            return value
        properties = schema.get("properties", {})
        made = {}
        for name, one in value.items():
            if name not in properties:
                made[name] = one  # whoever reads it objects to it
            elif (
                one is not None
                or name in schema.get("required", ())
                or problem_in(None, self.close(properties[name], path)) is None
            ):
                made[name] = self.open(one, properties[name], path)
        return made


def _alternatives(schema: _Schema) -> Iterator[_Schema]:
    """Yield the schemas of which a value satisfies one; the schema itself where it has no alternatives."""
    if "const" in schema:
        yield from _alternatives({"enum": [schema["const"]]})
    elif "enum" in schema:
        names = [one for one in schema["enum"] if type(one) in (str, int)]
        if len(names) == len(schema["enum"]):
            yield schema
            return
        if names:
            yield {"enum": names}
        kinds = {type(None): "null", bool: "boolean", float: "number"}
        yield from (
            {"type": kinds[one]} if one in kinds else {}
            for one in dict.fromkeys(map(type, schema["enum"]))
            if one not in (str, int)
        )
    elif isinstance(schema.get("type"), list):
        yield from ({**schema, "type": one} for one in schema["type"])
    elif (
        ways := schema.get("anyOf")
        or schema.get("oneOf")
        or (schema["allOf"] if len(schema.get("allOf", ())) == 1 else None)
    ):
        yield from ways
    else:
        yield schema


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return parts


def _is_table(schema: _Schema) -> bool:
    return "properties" not in schema and schema.get("additionalProperties") is not False


def _table_values(schema: _Schema) -> _Schema:
    declared = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    found = [one for one in declared if isinstance(one, Mapping)]
    return found[0] if len(found) == 1 else {}


def _bounds(schema: _Schema) -> dict[str, object]:
    return {name: schema[name] for name in _BOUNDS.get(str(schema["type"]), ()) if name in schema}


def _texts(value: object) -> list[str]:
    return [value] if isinstance(value, str) and value else []
