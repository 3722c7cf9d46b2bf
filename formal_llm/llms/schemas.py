"""The supported part of JSON Schema, and a strict reader of the objects that models write.

Only keywords that all providers of structured output share are supported, so that a schema means the same everywhere:
``type`` (one name), ``enum``, ``anyOf``, ``properties`` (all of them required, no others), ``items``, ``$ref`` into
``$defs`` at the top, and ``description``. Bounds (``maxLength``, ``minimum``, ...) are checked here, and not sent to
providers that do not support them. Any other keyword is an error before the first request, since a keyword that is
ignored would be a rule that does not hold. :func:`close_schema` makes a supported schema of any other one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

#: A schema as JSON data.
Schema: TypeAlias = Mapping[str, object]

#: The maximum number of characters of a text that is read; no requested object is longer.
MOST_CHARACTERS = 500_000
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_CALLED = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "a whole number", "number": "a number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip
_OF_TEXT, _OF_NUMBER, _OF_LIST = ("minLength", "maxLength"), ("minimum", "maximum"), ("minItems", "maxItems")
_BOUNDS = (*_OF_TEXT, *_OF_NUMBER, *_OF_LIST)
_KNOWN = frozenset((
    "type", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "$ref", "$defs", "description",
    "title", *_BOUNDS,
))  # fmt: skip


def check_schema(schema: Schema) -> None:
    """Check that a schema uses only the supported keywords.

    Raises:
        ValueError: the schema is not supported; the message names the place.
    """
    if schema.get("type") != "object":
        raise ValueError("a model is asked for an object: the schema has no type 'object' at its top")
    definitions = _definitions(schema)
    for place, one in [("the schema", schema), *((f"$defs/{name}", part) for name, part in definitions.items())]:
        _check_part(one, place, definitions, top=one is schema)
    for name in definitions:
        if name in _find_reached(definitions[name], definitions):
            raise ValueError(f"$defs/{name} refers to itself; not all providers know schemas that do")


def is_portable(schema: Schema) -> bool:
    """Whether a schema uses only the supported keywords, so that all providers can enforce it."""
    try:
        check_schema(schema)
    except ValueError:
        return False
    return True


def _definitions(schema: Schema) -> Mapping[str, Schema]:
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, Mapping) or not all(isinstance(one, Mapping) for one in definitions.values()):
        raise ValueError("$defs is a table of schemas")
    return definitions


def _check_part(schema: object, place: str, definitions: Mapping[str, Schema], *, top: bool = False) -> None:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{place} is no schema: {schema!r}")
    if unknown := set(schema) - _KNOWN or ({"$defs"} & set(schema) if not top else set()):
        raise ValueError(f"{place} has {', '.join(sorted(unknown))}, which not all providers know")
    if "$ref" in schema:
        if len(schema) > 1 or _name_target(schema["$ref"]) not in definitions:
            raise ValueError(f"{place}: $ref stands alone and names one of $defs, as in '#/$defs/name'")
    elif "anyOf" in schema:
        for number, one in enumerate(_require_list(schema["anyOf"], f"{place}: anyOf"), 1):
            _check_part(one, f"{place}/anyOf {number}", definitions)
    elif "enum" in schema:
        if not all(type(one) in (str, int) for one in _require_list(schema["enum"], f"{place}: enum")):
            raise ValueError(f"{place}: enum lists texts and whole numbers")
    elif not isinstance(schema.get("type"), str) or schema["type"] not in _TYPES:
        raise ValueError(f"{place}: type is one of {', '.join(_TYPES)}")
    elif schema["type"] == "object":
        _check_object(schema, place, definitions)
    elif schema["type"] == "array":
        _check_part(schema.get("items"), f"{place}/items", definitions)


def _check_object(schema: Schema, place: str, definitions: Mapping[str, Schema]) -> None:
    properties = schema.get("properties")
    required = schema.get("required", ())
    listed = sorted(required) if isinstance(required, (list, tuple)) else None
    if not isinstance(properties, Mapping) or listed != sorted(properties):
        raise ValueError(f"{place}: an object has properties, and all of them are required")
    if schema.get("additionalProperties") is not False:
        raise ValueError(f"{place}: an object has additionalProperties false")
    for name, one in properties.items():
        _check_part(one, f"{place}/{name}", definitions)


def _require_list(value: object, place: str) -> Sequence[object]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"{place} is a list of one thing at least")
    return value


def _name_target(reference: object) -> str:
    return str(reference).removeprefix("#/$defs/")


def _find_reached(schema: object, definitions: Mapping[str, Schema]) -> set[str]:
    """Return the definitions that a schema needs, directly or indirectly."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if "$ref" in part and (name := _name_target(part["$ref"])) not in found:
                found.add(name)
                waiting.append(definitions.get(name))
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
    return found


def closed(properties: Mapping[str, Schema]) -> dict[str, object]:
    """Return the schema of an object with exactly these properties."""
    names = list(properties)
    return {"type": "object", "properties": dict(properties), "required": names, "additionalProperties": False}


def portable(schema: Schema, *, lists: bool = False) -> dict[str, object]:
    """Return the schema without bounds, for providers that do not support them; ``lists`` keeps those of lists.

    The bounds are still checked when the answer is read.
    """
    removed = {*_OF_TEXT, *_OF_NUMBER, *(() if lists else _OF_LIST)}

    def of(one: object, names: bool = False) -> object:
        if isinstance(one, Mapping):
            kept = {key: value for key, value in one.items() if names or key not in removed}
            return {key: of(value, not names and key in ("properties", "$defs")) for key, value in kept.items()}
        return [of(part) for part in one] if isinstance(one, (list, tuple)) else one

    result = of(schema)
    assert isinstance(result, dict)
    return result


# -- reading ----------------------------------------------------------------------------------------------------------


def read_object(text: str, schema: Schema) -> dict[str, object]:
    """Read the object in a text and check that it satisfies the schema.

    White space and one Markdown fence (which chat models write) may surround it, and its strings may contain line
    breaks and other characters that JSON requires to be escaped. Nothing else is tolerated: no words before it, no
    duplicate key, no ``NaN``, no half of a surrogate pair.

    Raises:
        ValueError: there is no such object; the message is worded for the model.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters, at most {MOST_CHARACTERS:,} are read")
    try:
        value: object = json.loads(
            _strip_fence(text), strict=False, object_pairs_hook=_reject_duplicates, parse_constant=_no_number
        )
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair in a text") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no whole JSON object: {error}") from None
    if found := problem_in(value, schema):
        raise ValueError(found)
    assert isinstance(value, dict)
    return value


def _strip_fence(text: str) -> str:
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```") and "\n" in inner:
        first, _, rest = inner.partition("\n")
        if first[3:].strip().casefold() in ("", "json"):
            return rest[:-3]
    return inner


def _reject_duplicates(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {_shorten_value(key)} is given twice")
        result[key] = value
    return result


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def problem_in(value: object, schema: Schema) -> str | None:
    """Return the first problem of a value, or None if it satisfies the schema.

    Args:
        value: JSON data.
        schema: see :func:`check_schema`.
    """
    found = _find_problem(value, schema, _definitions(schema), ())
    if found is None:
        return None
    place, what = found
    return f"{'.'.join(place)}: {what}" if place else what


_Found: TypeAlias = "tuple[tuple[str, ...], str] | None"


def _find_problem(value: object, schema: object, definitions: Mapping[str, Schema], place: tuple[str, ...]) -> _Found:
    assert isinstance(schema, Mapping)
    if "$ref" in schema:
        return _find_problem(value, definitions[_name_target(schema["$ref"])], definitions, place)
    if "anyOf" in schema:
        found = [_find_problem(value, one, definitions, place) for one in schema["anyOf"]]
        if None in found:
            return None
        # The alternative that matched farthest was probably intended.
        return max((one for one in found if one is not None), key=lambda one: len(one[0]))
    if "enum" in schema:
        # Types are compared too: true is not 1.
        if any(type(value) is type(one) and value == one for one in schema["enum"]):
            return None
        return place, f"{_show_value(value)} is none of {', '.join(map(str, schema['enum']))}"
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return place, f"{_CALLED[kind]} was expected, not {_show_value(value)}"
    if isinstance(value, dict):
        return _object_problem(value, schema, definitions, place)
    if isinstance(value, list):
        if out := _out_of_bounds(len(value), schema, _OF_LIST, "entries"):
            return place, out
        parts = (_find_problem(one, schema["items"], definitions, (*place, str(n))) for n, one in enumerate(value, 1))
        return next((one for one in parts if one is not None), None)
    if isinstance(value, str):
        out = _out_of_bounds(len(value), schema, _OF_TEXT, "characters")
    else:
        out = _out_of_bounds(value, schema, _OF_NUMBER, "")
    return (place, out) if out else None


def _object_problem(
    value: dict[str, object], schema: Mapping[str, object], definitions: Mapping[str, Schema], place: tuple[str, ...]
) -> _Found:
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    for name in properties:
        if name not in value:
            return place, f"the key {name} is missing"
    for name in value:
        if name not in properties:
            return place, f"there is no key {_shorten_value(name)}; the keys are {', '.join(properties)}"
    parts = (_find_problem(value[name], one, definitions, (*place, name)) for name, one in properties.items())
    return next((one for one in parts if one is not None), None)


def _out_of_bounds(amount: object, schema: Mapping[str, object], names: tuple[str, str], unit: str) -> str:
    least, most = (schema.get(name) for name in names)
    assert isinstance(amount, (int, float, type(None)))
    described = f"{amount} {unit}".strip()
    if amount is not None and isinstance(least, (int, float)) and amount < least:
        return f"{described}, and at least {least} are wanted"
    if amount is not None and isinstance(most, (int, float)) and amount > most:
        return f"{described}, and at most {most} are wanted"
    return ""


def _show_value(value: object) -> str:
    return _shorten_value(value) if isinstance(value, (str, int, float)) else _CALLED[_name_of(value)]


def _name_of(value: object) -> str:
    return next((name for name, types in _TYPES.items() if isinstance(value, types)), "null")


def _shorten_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


# -- closing ----------------------------------------------------------------------------------------------------------

#: Any JSON schema, such as one of pydantic.
_AnySchema: TypeAlias = Mapping[str, Any]
_BOUNDS_OF = {"string": _OF_TEXT, "integer": _OF_NUMBER, "number": _OF_NUMBER, "array": _OF_LIST}
_NULL = {"type": "null"}


def close_schema(schema: _AnySchema) -> dict[str, object]:
    """Return any schema of an object in the supported part of JSON Schema, without definitions.

    There an object has exactly its properties, all of them required. So what is open is written in another form: null
    for a property that keeps its default; a list of ``{"key": ..., "value": ...}`` for a table with any keys; JSON as a
    text for any value, and for a value of a kind that contains itself. :func:`open_value` undoes that. What the
    supported part cannot express, such as patterns, whoever reads the value must check.
    """
    return _Closing(schema).close_object(schema, ())


def open_value(value: object, schema: _AnySchema) -> object:
    """Return what was written by ``close_schema(schema)`` as it is written by the schema itself."""
    return _Closing(schema).open_object(value, schema, ())


class _Closing:
    """A schema with its definitions. ``path`` names those that contain the place."""

    def __init__(self, schema: _AnySchema) -> None:
        self._definitions = {
            f"#/{key}/{name}": one for key in ("$defs", "definitions") for name, one in schema.get(key, {}).items()
        }

    def _resolve_reference(self, schema: _AnySchema, path: tuple[str, ...]) -> tuple[_AnySchema, tuple[str, ...]]:
        """Return what a schema refers to, described by itself; of what contains itself, that of any value."""
        while "$ref" in schema:
            name = str(schema["$ref"])
            found = {"description": name.rpartition("/")[2]} if name in path else self._definitions.get(name, {})
            schema = {**found, **{key: one for key, one in schema.items() if key == "description"}}
            path = (*path, name)
        return schema, path

    def close(self, schema: _AnySchema, path: tuple[str, ...]) -> dict[str, Any]:
        schema, path = self._resolve_reference(schema, path)
        made = self._close_resolved(schema, path)
        about = " ".join(
            [*_list_texts(schema.get("description")), *(f"({one})" for one in _list_texts(schema.get("format")))]
        )
        return {**made, "description": f"{about} {made.get('description', '')}".strip()} if about else made

    def _close_resolved(self, schema: _AnySchema, path: tuple[str, ...]) -> dict[str, Any]:
        if (ways := list(_list_alternatives(schema))) != [schema]:
            made = [part for way in ways for part in _list_parts(self.close(way, path))]
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
            return {"type": kind, "items": items, **_list_bounds(schema)}
        if kind in ("string", "integer", "number", "boolean", "null"):
            return {"type": kind, **_list_bounds(schema)}
        return {"type": "string", "description": "(any value, as JSON)"}

    def close_object(self, schema: _AnySchema, path: tuple[str, ...]) -> dict[str, object]:
        return closed({name: self._close_property(schema, name, path) for name in schema.get("properties", {})})

    def _close_property(self, schema: _AnySchema, name: str, path: tuple[str, ...]) -> dict[str, Any]:
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
            made = {"anyOf": [*_list_parts(made), _NULL]}
        return {**made, "description": f"{about} {hint}".strip()} if about or hint else made

    # -- back --------------------------------------------------------------------------------------------------------

    def open(self, value: object, schema: _AnySchema, path: tuple[str, ...]) -> object:
        schema, path = self._resolve_reference(schema, path)
        if (ways := list(_list_alternatives(schema))) != [schema]:
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
            table = {str(key): self.open(one, inner, path) for key, one in pairs}
            return table if len(table) == len(value) else value  # of a key that is given twice, neither is dropped
        if kind == "array" and isinstance(value, list):
            places: Sequence[_AnySchema] = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
            return [self.open(one, by, path) for one, by in zip(value, places, strict=False)] + value[len(places) :]
        if kind is None and "enum" not in schema and isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        return value

    def open_object(self, value: object, schema: _AnySchema, path: tuple[str, ...]) -> object:
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


def _list_alternatives(schema: _AnySchema) -> Iterator[_AnySchema]:
    """Yield the schemas of which a value satisfies one; the schema itself where it has no alternatives."""
    if "const" in schema:
        yield from _list_alternatives({"enum": [schema["const"]]})
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


def _list_parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return parts


def _is_table(schema: _AnySchema) -> bool:
    return "properties" not in schema and schema.get("additionalProperties") is not False


def _table_values(schema: _AnySchema) -> _AnySchema:
    declared = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    found = [one for one in declared if isinstance(one, Mapping)]
    return found[0] if len(found) == 1 else {}


def _list_bounds(schema: _AnySchema) -> dict[str, object]:
    return {name: schema[name] for name in _BOUNDS_OF.get(str(schema["type"]), ()) if name in schema}


def _list_texts(value: object) -> list[str]:
    return [value] if isinstance(value, str) and value else []
