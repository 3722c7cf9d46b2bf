"""Plugins: what installed packages offer to this library, found by name, and imported when its name is asked for.

A package offers a plugin as an *entry point* in its ``pyproject.toml``::

    [project.entry-points."formal_llm.providers"]
    keywords = "formal_llm_tea.provider:keywords"

Every plugin is a function. What it takes and returns is declared by a :class:`Plugins`, one for each kind. What the
library has itself comes first and is found without a look at any package, so no package can replace it. Only what is
installed is found: entry points are read from the metadata of packages, which imports nothing.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Generic, TypeVar, cast

from formal_llm.errors import FormalLLMError, PluginError

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that an installed package offers; nothing of it is imported.

    Attributes:
        called: what messages call its kind.
        package: the package, with its version.
        value: where its function is: ``MODULE:NAME``.
    """

    called: str
    name: str
    package: str
    value: str

    def load(self) -> Callable[..., object]:
        """Import its function.

        Raises:
            PluginError: it cannot be imported.
        """
        try:
            return cast("Callable[..., object]", resolve_name(self.value))
        except (Exception, SystemExit) as error:  # whatever the module does when it is imported
            raise self.make_error(f"cannot be imported: {_describe(error)}") from error

    def make_error(self, problem: str) -> PluginError:
        """The error that it cannot be used, which names its package."""
        where = f"{self.value}, of the package {self.package}"
        return PluginError(
            self.called, self.name, (self.package,), f"the {self.called} {self.name!r} ({where}) {problem}"
        )


@dataclass(frozen=True, slots=True)
class Plugins(Generic[R]):
    """The plugins of one kind.

    Attributes:
        group: what packages call the kind in their ``[project.entry-points]``.
        called: what messages call it.
        gives: what its functions give, in words.
        fits: whether something is what the plugin of a name should give.
        builtin: the names that this library has itself, which no plugin may have.
    """

    group: str
    called: str
    gives: str
    fits: Callable[[str, object], bool]
    builtin: Callable[[], Iterable[str]]

    def list_installed(self) -> list[Plugin]:
        """All that are offered, by name, those that cannot be used as well."""
        from importlib.metadata import entry_points  # 20 ms, for those who ask for what we do not have

        found = ((one, one.dist) for one in entry_points(group=self.group))
        named = ((one, f"{dist.name} {dist.version}" if dist else "an unknown package") for one, dist in found)
        plugins = (Plugin(self.called, one.name, package, one.value) for one, package in named)
        return sorted(plugins, key=lambda one: (one.name, one.package))

    def names(self) -> list[str]:
        """The names by which plugins can be asked for."""
        return sorted({one.name for one in self.list_installed()}.difference(self.builtin()))

    def find(self, name: str) -> Plugin | None:
        """The plugin of that name, nothing of it imported; None where none is installed.

        Raises:
            PluginError: this library has something of that name itself, or two packages offer it.
        """
        found = [one for one in self.list_installed() if one.name == name]
        packages = tuple(one.package for one in found)
        problem = ""
        if found and name in set(self.builtin()):
            problem = (
                f"the {self.called} {name!r} of the package {' and '.join(packages)} is not used: formal_llm has one "
                f"of that name itself. Its author has to give it another name"
            )
        elif len(found) > 1:
            problem = (
                f"there is more than one {self.called} {name!r}: of the packages {' and '.join(packages)}; uninstall "
                f"all but one of them"
            )
        if problem:
            raise PluginError(self.called, name, packages, problem)
        return found[0] if found else None

    def make(self, name: str, *arguments: object) -> R | None:
        """What the plugin of that name gives for these arguments; None where none is installed.

        Raises:
            PluginError: it cannot be used; the message names its package, and why.
            FormalLLMError: what the plugin itself raises of these.
        """
        plugin = self.find(name)
        if plugin is None:
            return None
        function = plugin.load()
        try:
            made = function(*arguments)
        except FormalLLMError:
            raise
        except Exception as error:
            raise plugin.make_error(f"failed: {_describe(error)}") from error
        if not self.fits(name, made):
            raise plugin.make_error(f"has to give {self.gives}, and gave {reprlib.repr(made)}")
        return cast("R", made)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
