"""Values: a mapping that does not change, and pickling by fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dictionary that cannot be changed, and so has a hash, where its values have one.

    It is read as fast as a dictionary, equals one with the same items, and can be pickled and copied.
    """

    __slots__ = ()

    def _refuse_change(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping belongs to a value, and does not change")

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    clear = pop = popitem = setdefault = update = _refuse_change

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none since it changes
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class PickledByFields:
    """A frozen dataclass that is pickled and copied by its fields: what it has worked out stays behind."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
