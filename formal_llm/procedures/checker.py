"""Checks the outcome of a run by itself: it imports nothing of this package, and can be read in one sitting.

Its input is plain data (:func:`formal_llm.procedures.evidence.write_evidence`): the procedure as nested lists, and the
outcome with all calls. It makes sure that every call was allowed when it was made, that a goal that was done was
allowed and succeeded, and that a goal that was declined could not have been allowed: a part of its need is refuted by
results, or depends on a call that may not be made, or on a value that the user did not have; or the goal itself
is called with such a value.

A need is ``yes``, ``no``, ``never`` (nothing that may be done makes it yes) or ``open``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

#: The name of the item that a condition on the items of a list is about; no value can be called so.
_ITEM = "."


class _Unknown(Exception):
    """A value that cannot be determined; ``blocked`` if nothing that may be done determines it."""

    def __init__(self, blocked: bool) -> None:
        self.blocked = blocked


def check_evidence(evidence: str | Mapping[str, object]) -> list[str]:
    """Return what is wrong with the outcome of a run; empty if nothing is.

    Args:
        evidence: the procedure and the outcome, as JSON text or as data.
    """
    data: Any = json.loads(evidence) if isinstance(evidence, str) else evidence
    return _Checker(data["procedure"], data["outcome"]).check()


class _Checker:
    def __init__(self, procedure: dict[str, Any], outcome: dict[str, Any]) -> None:
        self.tools, self.facts, self.constants = procedure["tools"], procedure["facts"], procedure["constants"]
        self.outcome, self.known, self.calls = outcome, outcome["known"], outcome["calls"]
        self.made: list[dict[str, Any]] = []
        self.visiting: list[str] = []

    def check(self) -> list[str]:
        problems = []
        for call in self.calls:
            if self.judge(self.tools[call["tool"]]["need"], call["arguments"], False) != "yes":
                problems.append(f"{call['tool']} was called before its need was established")
            problems += self.check_computed(call)
            self.made.append(call)
        ending, goal, last = self.outcome["ending"], self.outcome["goal"], self.calls[-1] if self.calls else None
        is_goal = last is not None and last["tool"] == goal and last["arguments"] == self.outcome["arguments"]
        if ending == "done":
            if not is_goal or last is None or not _has_succeeded(last) or last.get("value") != self.outcome["result"]:
                problems.append("the goal is reported as done, and its call did not succeed last")
        elif ending == "declined":
            refused = is_goal and last is not None and not _has_succeeded(last)
            if is_goal and not refused:
                problems.append("the goal was declined, and its call succeeded")
            found = self.judge(self.tools[goal]["need"], self.outcome["arguments"], False)
            if not refused and not self.lacks_value(goal) and found not in ("no", "never"):
                problems.append("the goal was declined, and its need is not refuted")
        return problems

    def lacks_value(self, goal: str) -> bool:
        """Return whether the user did not have a value that the goal is called with."""
        tool = self.tools[goal]
        given = {*tool["defaults"], *dict(tool["computed"]), *self.outcome["arguments"], *self.known, *self.constants}
        return not given.issuperset(tool["parameters"])

    def check_computed(self, call: dict[str, Any]) -> list[str]:
        """Check that arguments that are computed were."""
        problems = []
        for name, expression in self.tools[call["tool"]]["computed"]:
            try:
                is_right = _make_plain(self.compute(expression, call["arguments"])) == call["arguments"][name]
            except _Unknown:
                is_right = False
            if not is_right:
                problems.append(f"{call['tool']} was called with a {name} that is not what it is computed to be")
        return problems

    # -- needs: ["all of" | "any of" | "in order" | "none of" | "first of", needs], ["not", need],
    #    ["fact", name, expressions], ["condition", expression], ["hole", text]

    def judge(self, need: list[Any], own: dict[str, Any], negated: bool) -> str:
        kind = need[0]
        if kind == "not":
            return {"yes": "no", "no": "yes"}.get(found := self.judge(need[1], own, not negated), found)
        if kind == "none of":
            return self.judge(["not", ["any of", need[1]]], own, negated)
        if kind == "first of":
            return next((one for need in need[1] if (one := self.judge(need, own, negated)) != "never"), "never")
        if kind in ("all of", "any of", "in order"):
            return self.judge_group(kind, [self.judge(one, own, negated) for one in need[1]], negated)
        try:
            if kind == "condition":
                value = self.compute(need[1], own)
                return "yes" if value is True else "no" if value is False or value is None else "never"
            if kind == "fact":
                fact = self.facts[need[1]]
                values = {name: self.compute(one, own) for name, one in zip(fact["parameters"], need[2], strict=True)}
                if fact["action"] is None:
                    return self.judge(fact["body"], values, negated)
                return self.judge_action(fact, values, negated)
        except _Unknown as unknown:
            return "never" if unknown.blocked else "open"
        return "never"

    def judge_group(self, kind: str, found: list[str], negated: bool) -> str:
        decisive, otherwise = ("yes", "no") if kind == "any of" else ("no", "yes")
        if kind == "in order":
            found = found[: next((place + 1 for place, one in enumerate(found) if one != "yes"), len(found))]
        if decisive in found:
            return decisive
        if "never" in found and ("open" not in found or (kind != "any of") is not negated):
            return "never"
        return "open" if "open" in found else otherwise

    def judge_action(self, fact: dict[str, Any], values: dict[str, Any], negated: bool) -> str:
        """A fact that an action establishes: it holds from a call that shows it until a call that ends it."""
        _, tool, given, _ = fact["action"]
        names, wanted = self.tools[tool]["parameters"], {}
        for name, one in zip(names, given, strict=False):
            if one[0] == "constant" or (one[0] == "name" and (one[1][0] in values or one[1][0] in self.constants)):
                wanted[name] = self.compute(one, values)
        for made in reversed(self.made):
            if made["tool"] == tool and _has_arguments(made, wanted) and self.shows(fact["body"][1], values, made):
                return "yes"
            for ender, ended in fact["until"]:
                pairs = zip(self.tools[ender]["parameters"], ended, strict=False)
                wanted_there = {name: self.compute(one, values) for name, one in pairs}
                if made["tool"] == ender and _has_succeeded(made) and _has_arguments(made, wanted_there):
                    return self.judge_action_undone(tool, given, values, negated)
        return self.judge_action_undone(tool, given, values, negated)

    def judge_action_undone(self, tool: str, given: list[Any], values: dict[str, Any], negated: bool) -> str:
        if negated:
            return "no"
        arguments = self.build(tool, given, values)
        if any(made["tool"] == tool and made["arguments"] == arguments for made in self.made):
            return "no"
        return self.judge_possible(tool, arguments)

    def judge_possible(self, tool: str, arguments: dict[str, Any]) -> str:
        key = json.dumps([tool, arguments], sort_keys=True)
        if key in self.visiting:
            return "never"
        self.visiting.append(key)
        found = self.judge(self.tools[tool]["need"], arguments, False)
        self.visiting.pop()
        return "never" if found in ("no", "never") else "open"

    def shows(self, condition: list[Any], values: dict[str, Any], made: dict[str, Any]) -> bool:
        try:
            return self.compute(condition, values, made) is True
        except _Unknown:
            return False

    # -- expressions: ["constant", type, value], ["name", steps], ["call", tool, expressions, steps], ["ok", call],
    #    ["function", name, expressions], ["sign", sign, left, right], ["set", expressions], ["range", first, last];
    #    on an item of a list: ["item", steps], ["and" | "or", expressions], ["not", expression]

    def compute(self, one: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None = None) -> Any:
        kind = one[0]
        if kind == "constant":
            return _read_constant(one[1], one[2])
        if kind == "name":
            return self.look_up(one[1], own, fixed)
        if kind == "item":
            return self.follow(own[_ITEM], one[1], own, fixed)
        if kind in ("and", "or", "not"):
            return self.join(kind, one[1] if kind != "not" else one[1:], own, fixed)
        if kind in ("call", "ok"):
            call = one if kind == "call" else one[1]
            made = self.find(call, own, fixed)
            if kind == "ok":
                return _has_succeeded(made)
            if "error" in made:
                raise _Unknown(blocked=True)
            return self.follow(made["value"], call[3], own, fixed)
        if kind == "function" and one[1] in ("has", "missing", "holds"):
            return self.test_value(one[1], one[2][0], own, fixed)
        if kind == "function":
            return _apply_function(one[1], [self.compute(part, own, fixed) for part in one[2]])
        if kind == "set":
            return [self.compute(part, own, fixed) for part in one[1]]
        left = self.compute(one[2], own, fixed)
        if one[3][0] == "range":
            first, last = (self.compute(part, own, fixed) for part in one[3][1:])
            return not _compare_values(left, first) < 0 and not _compare_values(last, left) < 0
        return _apply_sign(one[1], left, self.compute(one[3], own, fixed))

    def join(self, kind: str, parts: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None) -> bool:
        """Join conditions: one that decides does, even if others cannot be determined."""
        unknown = None
        for part in parts:
            try:
                value = self.compute(part, own, fixed)
                if value is not None and not isinstance(value, bool):
                    raise _Unknown(blocked=True)
                if kind == "not":
                    return not value
                if bool(value) is (kind == "or"):
                    return kind == "or"
            except _Unknown as error:
                unknown = error
        if unknown is not None:
            raise unknown
        return kind == "and"

    def look_up(self, steps: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None) -> Any:
        for values in (own, self.constants, self.known):
            if steps[0] in values:
                value = values[steps[0]]
                value = _read_constant(*value) if values is self.constants else value
                return self.follow(value, steps[1:], own, fixed)
        raise _Unknown(blocked=True)

    def test_value(self, name: str, one: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None) -> bool:
        try:
            value = self.compute(one, own, fixed)
        except _Unknown as unknown:
            if not unknown.blocked:
                raise
            return name == "missing"
        return value is True if name == "holds" else name == "has"

    def find(self, call: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None) -> dict[str, Any]:
        if fixed is not None:
            return fixed
        arguments = self.build(call[1], call[2], own)
        made: dict[str, Any]
        for made in reversed(self.made):
            if made["tool"] == call[1] and made["arguments"] == arguments:
                return made
            changes = self.tools[made["tool"]]["changes"]
            if self.tools[made["tool"]]["acts"] and (changes is None or call[1] in changes):
                break
        raise _Unknown(blocked=self.judge_possible(call[1], arguments) == "never")

    def build(self, tool: str, given: list[Any], own: dict[str, Any]) -> dict[str, Any]:
        values = [_make_plain(self.compute(one, own)) for one in given]
        defaults = self.tools[tool]["defaults"]
        return {name: values[place] if place < len(values) else defaults[name]
                for place, name in enumerate(self.tools[tool]["parameters"])}  # fmt: skip

    def follow(self, value: Any, steps: list[Any], own: dict[str, Any], fixed: dict[str, Any] | None) -> Any:
        for place, step in enumerate(steps):
            choice = step[0] if isinstance(step, list) and step[0] in ("one", "every") else None
            if (step is None or choice) and isinstance(value, list | dict):
                inner = list(value.values() if isinstance(value, dict) else value)
                if choice:
                    inner = [one for one in inner if self.join("and", [step[1]], {**own, _ITEM: one}, fixed)]
                    if choice == "one" and len(inner) != 1:
                        raise _Unknown(blocked=True)
                rest = steps[place + 1 :]
                found = [self.follow(one, rest, own, fixed) for one in inner]
                if choice == "one":
                    return found[0]
                is_nested = any(one is None or (isinstance(one, list) and one[0] == "every") for one in rest)
                return [one for many in found if isinstance(many, list) for one in many] if is_nested else found
            if choice:
                raise _Unknown(blocked=True)
            step = self.compute(step, own, fixed) if isinstance(step, list) else step
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                raise _Unknown(blocked=True) from None
        return value


def _has_succeeded(made: dict[str, Any]) -> bool:
    return "error" not in made and made["value"] is not False and made["value"] is not None


def _has_arguments(made: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(
        name in made["arguments"] and _compare_values(made["arguments"][name], value) == 0
        for name, value in wanted.items()
    )


def _read_constant(kind: str, value: Any) -> Any:
    readers: dict[str, Any] = {
        "number": Fraction, "date": date.fromisoformat, "moment": datetime.fromisoformat, "time": time.fromisoformat,
        "duration": lambda seconds: timedelta(seconds=seconds),
    }  # fmt: skip
    return readers[kind](value) if kind in readers else value


def _make_plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value.isoformat() if isinstance(value, date | time) else value


def _read_number(value: Any) -> Fraction:
    try:
        if not isinstance(value, bool):
            return Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, TypeError):
        pass
    raise _Unknown(blocked=True)


def _read_moment(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise _Unknown(blocked=True) from None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise _Unknown(blocked=True)


def _compare_values(one: Any, other: Any) -> int:
    """Compare as the notation does: numbers, also as texts, and dates; of other values only equality: 0, or 2."""
    if one is None or other is None or isinstance(one, bool) or isinstance(other, bool):
        if one is other or one is None or other is None:
            return 0 if one is other else 2
        if type(one) is type(other):
            return 2
        raise _Unknown(blocked=True)
    pair = _make_comparable(one, other)
    if pair is None:
        return 0 if one == other else 2
    return int(pair[0] > pair[1]) - int(pair[0] < pair[1])


def _make_comparable(one: Any, other: Any) -> tuple[Any, Any] | None:
    """Two values as numbers, times or durations; None if only their equality counts."""
    kinds = {type(one), type(other)}
    if timedelta in kinds:
        return _make_duration(one), _make_duration(other)
    if kinds & {int, float, Fraction}:
        return _read_number(one), _read_number(other)
    if time in kinds:
        return _make_time(one), _make_time(other)
    if date in kinds and kinds <= {date, datetime, str}:
        return _make_day(one), _make_day(other)
    if datetime in kinds:
        return _read_moment(one), _read_moment(other)
    if kinds == {str} and one != other:
        for read in (_read_number, _read_moment):
            try:
                pair = read(one), read(other)
            except _Unknown:
                continue
            return pair if pair[0] != pair[1] else None  # equal numbers written differently are different texts
    return None


def _make_duration(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=float(_read_number(value)))


def _make_time(value: Any) -> time:
    return value if isinstance(value, time) else _read_moment(value).time()


def _make_day(value: Any) -> date:
    return value if type(value) is date else _read_moment(value).date()


def _apply_sign(sign: str, one: Any, other: Any) -> Any:
    if sign in ("==", "!="):
        return (_compare_values(one, other) == 0) is (sign == "==")
    if sign in ("<", "<=", ">", ">="):
        found = _compare_values(one, other)
        if found == 2:
            raise _Unknown(blocked=True)
        return {"<": found < 0, "<=": found <= 0, ">": found > 0, ">=": found >= 0}[sign]
    if sign == "in":
        return any(_compare_values(one, each) == 0 for each in other)
    if sign == "contains":
        return any(_compare_values(each, other) == 0 for each in one) if isinstance(one, list) else other in one
    if sign in ("starts with", "ends with"):
        return bool(one.startswith(other) if sign == "starts with" else one.endswith(other))
    if sign in ("+", "-") and {type(one), type(other)} & {date, datetime, timedelta, str}:
        return _shift_time(one, other, 1 if sign == "+" else -1)
    if sign == "*" and timedelta in {type(one), type(other)}:
        length, factor = (one, other) if isinstance(one, timedelta) else (other, one)
        return timedelta(seconds=float(_read_number(factor) * Fraction(length.total_seconds())))
    first, second = _read_number(one), _read_number(other)
    if sign == "/" and not second:
        raise _Unknown(blocked=True)
    return {"+": first + second, "-": first - second, "*": first * second, "/": first / (second or 1)}[sign]


def _shift_time(one: Any, other: Any, direction: int) -> Any:
    if isinstance(other, timedelta):
        return one + direction * other if isinstance(one, timedelta) else _read_moment(one) + direction * other
    if isinstance(one, timedelta) and direction > 0:
        return _read_moment(other) + one
    try:
        return _read_number(one) + direction * _read_number(other)
    except _Unknown:
        if direction > 0:
            raise
        return _read_moment(one) - _read_moment(other)


def _apply_function(name: str, given: list[Any]) -> Any:
    functions: dict[str, Any] = {
        "len": len, "sum": lambda one: sum(map(_read_number, one)), "abs": lambda one: abs(_read_number(one)),
        "count": lambda many, one: sum(_compare_values(each, one) == 0 for each in many),
        "min": lambda *many: min(map(_read_number, many[0] if len(many) == 1 else many)),
        "max": lambda *many: max(map(_read_number, many[0] if len(many) == 1 else many)),
        "lower": lambda one: _change_texts(one, str.lower), "upper": lambda one: _change_texts(one, str.upper),
        "trim": str.strip, "number": _read_number,
        "date": lambda one: _read_moment(one).date(), "keys": list, "time": lambda one: _read_moment(one).time(),
        "years": lambda one, other: _count_years(_read_moment(one).date(), _read_moment(other).date()),
        "overlap": lambda some, others: any(_compare_values(one, each) == 0 for one in some for each in others),
        "weekday": lambda one: _read_moment(one).strftime("%a"), "distinct": lambda many: list(dict.fromkeys(many)),
        "within": lambda some, others: all(any(_compare_values(one, each) == 0 for each in others) for one in some),
    }  # fmt: skip
    if name not in functions:
        raise ValueError(f"the checker does not know the function {name}")
    try:
        return functions[name](*given)
    except (TypeError, ValueError, AttributeError):
        raise _Unknown(blocked=True) from None


def _count_years(first: date, last: date) -> int:
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


def _change_texts(value: Any, change: Any) -> Any:
    return [change(one) for one in value] if isinstance(value, list) else change(value)
