"""Kinds, the types of the inputs and outputs of tools, and typed values.

A kind specifies the Python class of its values, which of them are valid, what distinguishes them (their content key),
how they are serialized (never with pickle, since others may be able to write to a cache) and how they are displayed.
``image`` and ``text`` are built in; a pack defines others with :class:`Kind` and :func:`register`. Any other type hint
that pydantic can read is a kind as it is (:func:`kind_for`).
"""

from __future__ import annotations

import copy
import hashlib
import html
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from formal_llm.authored.files import open_file
from formal_llm.errors import InputError
from formal_llm.llms.schemas import problem_in
from formal_llm.tools import images
from formal_llm.tools.hints import TypeHint

if TYPE_CHECKING:
    from PIL.Image import Image

V = TypeVar("V")

#: The maximum number of characters of one text.
MAX_CHARACTERS = 2_000_000
#: What JSON schemas call the values of a class.
_JSON_TYPES: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _as_it_is(value: V) -> V:
    return value


@dataclass(frozen=True, eq=False)
class Kind:
    """A type of values. Two kinds are equal if their names are.

    A kind can be pickled if its functions can, that is, if they are defined in a module.

    Attributes:
        of: the Python class of its values; or its module and name, as in ``"PIL.Image:Image"``, so that the module is
            imported only where such values exist; or a type hint.
        dump: serializes a value to bytes, from which ``load`` creates an equal one.
        load: deserializes a value; raises any exception for invalid bytes.
        check: validates a value: returns it, possibly in a normal form, or raises an exception.
        canonical: the bytes that distinguish unequal values; default: ``dump``.
        copy: copies a value so that the copy can be changed. Immutable values are their own copies.
        size: estimates how many bytes a value takes in memory.
        show: renders a value as HTML. It must escape all content and refer to nothing external.
        ending: the extension of a file that contains a value.
    """

    name: str
    of: type | str | TypeHint
    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]
    check: Callable[[Any], Any] = _as_it_is
    canonical: Callable[[Any], bytes] | None = None
    copy: Callable[[Any], Any] = _as_it_is
    size: Callable[[Any], int] | None = None
    show: Callable[[Any], str] | None = None
    ending: str = ".bin"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Kind) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def has(self, value: object) -> bool:
        """Return whether a value is of the class of this kind; of a type hint, only :meth:`accept` determines it."""
        if isinstance(self.of, TypeHint):
            return True
        if isinstance(self.of, type):
            return isinstance(value, self.of)
        module, _, name = self.of.partition(":")
        return any(base.__module__ == module and base.__qualname__ == name for base in type(value).__mro__)

    def accept(self, value: object) -> object:
        """Return a value in its normal form.

        Raises:
            InputError: the value is not of this kind, or not valid.
        """
        if not self.has(value):
            raise InputError(f"a value of kind {self.name} was expected, not one of class {type(value).__name__}")
        try:
            return self.check(value)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # such as an image whose file turns out to be damaged when its pixels are read
            raise InputError(f"no acceptable {self.name}: {error}") from error

    def read(self, data: bytes) -> object:
        """Return the value that ``dump`` wrote, in its normal form.

        Raises:
            InputError: the bytes contain no value, or an invalid one.
        """
        try:
            value = self.load(data)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # whatever the kind's own function raises for invalid bytes
            raise InputError(f"no readable {self.name}: {error}") from error
        return self.accept(value)

    # -- as models write them -----------------------------------------------------------------------------------

    @property
    def schema(self) -> dict[str, object] | None:
        """The JSON schema of its values as a model writes them; None if they cannot be written as JSON."""
        if isinstance(self.of, TypeHint):
            return self.of.adapter.json_schema()
        return {"type": _JSON_TYPES[self.of]} if self.of in _JSON_TYPES else None

    def read_json(self, data: object) -> object:
        """Return the value that a model wrote as JSON. A number is a text, too, where a text is wanted.

        Raises:
            InputError: it is no value of this kind; the message is worded for the model.
        """
        if isinstance(self.of, TypeHint):
            return self.of.read(data)
        name = _JSON_TYPES.get(self.of)
        if name is None:
            raise InputError(f"a value of kind {self} cannot be written")
        if self.of is str and isinstance(data, int | float):  # what a model writes is 4 as often as "4"
            data = json.dumps(data)
        problem = problem_in(data, {"type": name})
        if problem is not None:
            raise InputError(problem)
        try:
            return self.accept(float(data) if self.of is float and isinstance(data, int) else data)
        except OverflowError as error:
            raise InputError(str(error)) from None

    def to_text(self, value: object) -> str:
        """Return a value as text for a model: texts as they are, all else as JSON; or the name of the kind."""
        if isinstance(self.of, TypeHint):
            return self.of.to_text(value)
        if isinstance(value, str):
            return value
        return json.dumps(value) if self.of in _JSON_TYPES else f"<{self}>"

    def key(self, value: object) -> str:
        """Return the content key of a value: equal for equal values, also across processes and over time."""
        digest = hashlib.sha256(self.name.encode() + b"\0")
        digest.update((self.canonical or self.dump)(value))
        return digest.hexdigest()

    def weigh(self, value: object) -> int:
        """Estimate how many bytes a value takes in memory."""
        return self.size(value) if self.size is not None else len(self.dump(value))

    def to_html(self, value: object) -> str:
        """Render a value for a web page, escaped."""
        return self.show(value) if self.show is not None else f"<pre>{html.escape(str(value)[:2000])}</pre>"


# -- the built-in ones -------------------------------------------------------------------------------------------------


def _check_text(value: str) -> str:
    if len(value) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(value):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    value.encode()  # a lone surrogate raises ValueError here rather than when the text is written
    return str(value)


def _show_text(value: str) -> str:
    excerpt = value if len(value) <= 4000 else f"{value[:4000]} ... ({len(value):,} characters)"
    return f'<p class="text">{html.escape(excerpt)}</p>'


def _text_size(value: str) -> int:
    return 50 + 4 * len(value)


def _check_image(value: Image) -> Image:
    images.check_pixels(value, images.MAX_PIXELS)
    return images.normalize_image(value)


def _image_bytes(value: Image) -> bytes:
    width, height = value.size
    return f"{value.mode} {width} {height}\n".encode() + value.tobytes()


def _copy_image(value: Image) -> Image:
    return value.copy()


def _image_size(value: Image) -> int:
    return value.width * value.height * len(value.getbands())


def _show_image(value: Image) -> str:
    width, height = value.size
    return f'<img src="{images.data_uri(value, 320)}" alt="image"><p class="size">{width} x {height}</p>'


TEXT = Kind(
    "text",
    str,
    dump=str.encode,
    load=partial(str, encoding="utf-8"),
    check=_check_text,
    size=_text_size,
    show=_show_text,
    ending=".txt",
)

IMAGE = Kind(
    "image",
    "PIL.Image:Image",
    dump=images.write_png,
    load=images.read_image,
    check=_check_image,
    canonical=_image_bytes,
    copy=_copy_image,
    size=_image_size,
    show=_show_image,
    ending=".png",
)

_kinds: dict[str, Kind] = {"image": IMAGE, "text": TEXT}
_lock = threading.Lock()


def register(kind: Kind) -> Kind:
    """Register a kind, so that type hints of its class, and its name in a pack, refer to it.

    Raises:
        ValueError: another kind has that name or that class.
    """
    with _lock:
        for other in _kinds.values():
            if other is not kind and (other.name == kind.name or _class_name(other.of) == _class_name(kind.of)):
                raise ValueError(f"the kind {other.name} has that name or that class already")
        _kinds[kind.name] = kind
    return kind


def kind_named(name: str) -> Kind:
    """Return the registered kind of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in _kinds:
        raise ValueError(
            f"no kind {name!r}; there are {', '.join(_kinds)}; register others with formal_llm.tools.register"
        )
    return _kinds[name]


def kind_of(value: object) -> Kind:
    """Return the kind of a value: the registered one, else that of its class.

    Raises:
        InputError: there is none.
    """
    found = next((kind for kind in reversed(_kinds.values()) if kind.has(value)), None)  # the newest first
    if found is not None:
        return found
    try:
        return kind_for(type(value))
    except ValueError:
        problem = f"a value of class {type(value).__name__} is of no kind; there are {', '.join(_kinds)}"
        raise InputError(problem) from None


def kind_for(hint: object) -> Kind:
    """Return the kind that a type hint denotes.

    Args:
        hint: a kind itself; the class of a registered kind, or the name of either as text; or any other type hint that
            pydantic's ``TypeAdapter`` takes: numbers, lists, tables, dataclasses, models ...

    Raises:
        ValueError: the hint denotes no kind.
    """
    if isinstance(hint, Kind):
        return hint
    name = hint if isinstance(hint, str) else _class_name(hint) if isinstance(hint, type) else str(hint)
    for kind in _kinds.values():
        full = _class_name(kind.of)
        # Hints may be text (as with `from __future__ import annotations`): Image, Image.Image, PIL.Image.Image.
        dotted = full.replace(":", ".")
        if name in (kind.name, full, dotted) or (isinstance(hint, str) and f".{dotted}".endswith(f".{name}")):
            return kind
    of = TypeHint(hint)
    objection = "" if isinstance(hint, str) else of.find_objection()
    if objection is None:
        return typed_kind(of)
    detail = f" ({objection})" if objection else ""
    others = f"there are {', '.join(_kinds)}; register others with register(Kind(...))"
    raise ValueError(f"the type {name} is no kind{detail}; {others}")


def typed_kind(hint: object) -> Kind:
    """Return the kind of the values of a type hint, whether or not its class has a registered kind."""
    of = hint if isinstance(hint, TypeHint) else TypeHint(hint)
    return Kind(
        str(of), of, of.dump, of.load, of.check, of.canonical, copy.deepcopy, of.weigh, show=None, ending=".json"
    )


def _class_name(of: type | str | TypeHint) -> str:
    return f"{of.__module__}:{of.__qualname__}" if isinstance(of, type) else str(of)


def fits(kind: Kind, wanted: Kind) -> bool:
    """Return whether each value of a kind is one of another: ``int`` of ``float``, ``str`` of ``str | None``."""
    return kind == wanted or _hint_fits(_hint_of(kind), _hint_of(wanted))


def _hint_of(kind: Kind) -> Any:
    return kind.of.annotation if isinstance(kind.of, TypeHint) else kind.of


def _hint_fits(one: Any, wanted: Any) -> bool:
    if wanted in (Any, object) or one == wanted:
        return True
    if get_origin(one) in (Union, UnionType):
        return all(_hint_fits(part, wanted) for part in get_args(one))
    if get_origin(wanted) in (Union, UnionType):
        return any(_hint_fits(one, part) for part in get_args(wanted))
    if get_origin(one) is Annotated:
        return _hint_fits(get_args(one)[0], wanted)
    if one is int and wanted is float:
        return True
    outer, wider = get_origin(one) or one, get_origin(wanted) or wanted
    if one is bool or not (isinstance(outer, type) and isinstance(wider, type) and issubclass(outer, wider)):
        return False
    parts, wanted_parts = get_args(one), get_args(wanted)
    return not wanted_parts or (len(parts) == len(wanted_parts) and all(map(_hint_fits, parts, wanted_parts)))


class Value:
    """A typed value, treated as immutable: use :meth:`copy` to change it.

    Values are equal if their kinds and content keys are. A value is pickled as the bytes of its kind.

    Args:
        data: the value, in the normal form of its kind.
        key: its content key; computed by default.
        payload: the value as bytes, instead of ``data``: it is decoded when it is first accessed.
    """

    def __init__(self, kind: Kind, data: object = None, key: str | None = None, payload: bytes | None = None) -> None:
        self.kind = kind
        self._data = data
        self._payload = payload
        self._lock = threading.Lock()
        self.key = key if key is not None else kind.key(self.get())

    def get(self) -> Any:
        """Return the value itself, whose type depends on the kind."""
        with self._lock:
            if self._payload is not None:
                self._data = self.kind.read(self._payload)
                self._payload = None
            return self._data

    @cached_property
    def is_faithful(self) -> bool:
        """Whether its bytes tell it from every other value: reading them back gives an equal one of the same types.

        Under a type hint such as ``Any`` they may not: ``(1, 2)`` and ``[1, 2]`` are written alike.
        """
        if not isinstance(self.kind.of, TypeHint):
            return True  # a registered kind says so by what it dumps
        try:
            return _is_same(self.kind.read(self.dump()), self.get())
        except (InputError, RecursionError):
            return False

    def copy(self) -> object:
        """Return a copy of the value that may be changed."""
        copied: object = self.kind.copy(self.get())
        return copied

    def dump(self) -> bytes:
        """Return the value as bytes."""
        with self._lock:
            return self._payload if self._payload is not None else self.kind.dump(self._data)

    @property
    def size(self) -> int:
        """The approximate number of bytes it takes in memory."""
        with self._lock:
            return len(self._payload) if self._payload is not None else self.kind.weigh(self._data)

    def __eq__(self, other: object) -> bool:
        return (self.kind, self.key) == (other.kind, other.key) if isinstance(other, Value) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[type[Value], tuple[Kind, None, str, bytes]]:
        return Value, (self.kind, None, self.key, self.dump())

    def __repr__(self) -> str:
        return f"<Value {self.kind} {self.key[:12]}>"


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal and so are their types, in all their parts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return _is_same([*one], [*other]) and _is_same([*one.values()], [*other.values()])
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other) and _is_same(getattr(one, "__dict__", {}), getattr(other, "__dict__", {}))


def resolve_inside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Return the real path of a file that is inside a folder, following links.

    Args:
        path: the file; a relative path is resolved against ``folder``.
        folder: the folder that must contain it.

    Raises:
        InputError: the path is outside, or is not a regular file.
    """
    root = Path(folder).resolve()
    excerpt = os.fspath(path)[:200]
    try:
        real = (root / path).resolve()
        within = real.is_relative_to(root)
        exists, regular = within and real.exists(), within and real.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long, a null byte
        raise InputError(f"{excerpt!r} cannot be found") from error
    if not within:
        raise InputError(f"{excerpt!r} is not inside the folder {folder}")
    if not exists:
        raise InputError(f"{excerpt!r}: there is no such file in {folder}")
    if not regular:  # a folder, an endless device, a pipe without a writer
        raise InputError(f"{excerpt!r} in {folder} is no regular file but a folder, a device or a pipe")
    return real


def read_input(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    kind: Kind | None = None,
    *,
    max_bytes: int = images.MAX_BYTES,
) -> object:
    """Return the value in a file.

    Args:
        path: the file; a relative path is resolved against ``folder``.
        folder: the folder that the path must not leave by ``..``, an absolute path or a link.
        kind: the kind; default: derived from the extension: ``.txt`` and ``.md`` are texts, all others are images.
        max_bytes: the maximum number of bytes to read.

    Raises:
        InputError: the file is outside the folder, missing, too large, damaged, or not of that kind.
    """
    real = resolve_inside(path, folder)
    if kind is None:
        kind = TEXT if real.suffix.lower() in (".txt", ".md") else IMAGE
    try:
        with open_file(real) as file:
            data = file.read(max_bytes + 1)  # not stat and then read: the file may grow in between
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise InputError(f"{path} has more than {max_bytes:,} bytes")
    if kind == IMAGE:
        return IMAGE.accept(images.read_image(data, max_bytes=max_bytes, what=os.fspath(path)))
    try:
        value = kind.load(data)
    except Exception as error:  # whatever the kind's own function raises for invalid bytes
        raise InputError(f"{path} cannot be read as {kind}: {error}") from error
    return kind.accept(value)
