"""Plugins: what installed packages offer to this library, found by name, and imported when its name is asked for.

A package offers a plugin as an *entry point* in its ``pyproject.toml``::

    [project.entry-points."formal_llm.providers"]
    keywords = "formal_llm_tea.provider:keywords"

Every plugin is a function. What it takes and returns is declared by a :class:`Plugins`, one for each kind: it is the
way in for others beside a table of what this library has itself. What the library has comes first and is found without
a look at any package, so no package can replace it.

Only what is installed is found: entry points are read from the metadata of the packages on the path of Python. Reading
them imports nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from formal_llm.errors import FormalLLMError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that an installed package offers; nothing of it is imported.

    Attributes:
        package: the package, with its version.
        value: where its function is: ``MODULE:NAME``.
    """

    name: str
    package: str
    value: str


@dataclass(frozen=True, slots=True)
class Plugins(Generic[R]):
    """The plugins of one kind.

    Attributes:
        group: what packages call the kind in their ``[project.entry-points]``.
        called: what messages call it.
        takes: the arguments that a plugin is called with, by the names that messages have for them.
        gives: what it gives, in words.
        fits: whether something is what a plugin of this name should give.
        builtin: the names that this library has itself, which no plugin may have.
    """

    group: str
    called: str
    takes: tuple[str, ...]
    gives: str
    fits: Callable[[str, object], bool]
    builtin: Callable[[], Iterable[str]]

    def installed(self) -> list[Plugin]:
        """All that are offered, by name, those that cannot be used as well."""
        return sorted((_plugin(entry) for entry in self._entries()), key=lambda one: (one.name, one.package))

    def names(self) -> list[str]:
        """The names by which plugins can be asked for."""
        own = set(self.builtin())
        return sorted({entry.name for entry in self._entries()} - own)

    def make(self, name: str, *arguments: object) -> R | None:
        """What the plugin of that name gives for these arguments; None where none is installed.

        Raises:
            PluginError: it cannot be used; the message names its package, and why.
            FormalLLMError: what the plugin itself raises of these.
        """
        found = self.find(name)
        if found is None:
            return None
        plugin, function = found
        try:
            made = function(*arguments)
        except FormalLLMError:
            raise
        except Exception as error:
            raise self._error(plugin, f"failed: {_describe_error(error)}") from error
        if not self.fits(name, made):
            raise self._error(plugin, f"has to give {self.gives}, and gave {_short(made)}")
        return cast("R", made)

    def find(self, name: str) -> tuple[Plugin, Callable[..., object]] | None:
        """The plugin of that name and its function, imported now; None where none is installed.

        Raises:
            PluginError: as :meth:`the_one`; or it cannot be imported, or is no function that takes what it is given.
        """
        entry = self.the_one(name)
        if entry is None:
            return None
        plugin = _plugin(entry)
        try:
            function = entry.load()
        except (Exception, SystemExit) as error:  # whatever the module does when it is imported
            raise self._error(plugin, f"cannot be imported: {_describe_error(error)}") from error
        if not callable(function) or not _takes(function, len(self.takes)):
            shape = f"({', '.join(self.takes)})"
            wrong = "takes other arguments" if callable(function) else f"is {_short(function)}"
            raise self._error(plugin, f"has to be a function {shape} that gives {self.gives}; it {wrong}")
        return plugin, function

    def the_one(self, name: str) -> EntryPoint | None:
        """The entry point of that name, nothing of it imported; None where none is installed.

        Raises:
            PluginError: this library has something of that name itself, or two packages offer it.
        """
        entries = [entry for entry in self._entries() if entry.name == name]
        packages = tuple(sorted(_plugin(entry).package for entry in entries))
        if entries and name in set(self.builtin()):
            raise PluginError(self.called, name, packages, (
                f"the {self.called} {name!r} of the package {' and '.join(packages)} is not used: formal_llm has one "
                f"of that name itself. Its author has to give it another name"
            ))  # fmt: skip
        if len(entries) > 1:
            raise PluginError(self.called, name, packages, (
                f"there is more than one {self.called} {name!r}: of the packages {' and '.join(packages)}; uninstall "
                f"all but one of them"
            ))  # fmt: skip
        return entries[0] if entries else None

    def _entries(self) -> Iterable[EntryPoint]:
        from importlib.metadata import entry_points  # 20 ms, for those who ask for what we do not have

        return entry_points(group=self.group)

    def _error(self, plugin: Plugin, problem: str) -> PluginError:
        where = f"{plugin.value}, of the package {plugin.package}"
        return PluginError(
            self.called, plugin.name, (plugin.package,), f"the {self.called} {plugin.name!r} ({where}) {problem}"
        )


def _plugin(entry: EntryPoint) -> Plugin:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"
    return Plugin(entry.name, package, entry.value)


def _takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function can be called with a number of arguments; yes where its signature is unknown."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        return True
    return True


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"a {type(value).__name__}"
