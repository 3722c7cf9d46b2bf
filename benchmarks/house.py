"""The library measured: lines, imports between rooms, circles, names, and ``Any`` in public signatures.

    python benchmarks/house.py                       # the tables
    python benchmarks/house.py --any formal_llm/llms # the places, of one folder or file
    python benchmarks/house.py --names               # functions named by one word, class names in two files, modules
                                                     # with a single user

Everything is read from the syntax trees, imports inside functions and under ``TYPE_CHECKING`` included, so nothing of
the library has to be imported. The tests hold the house to what is measured here.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "formal_llm"


@dataclass(frozen=True, slots=True)
class Import:
    """One import of our own: ``source`` takes ``name`` from ``target``; deferred where it stands inside a function."""

    source: str
    target: str
    name: str
    line: int
    deferred: bool
    typing_only: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """A public function or method: where it stands, and whether ``Any`` is part of what it takes or gives."""

    module: str
    line: int
    name: str
    has_any: bool


def modules(root: Path = ROOT) -> dict[str, Path]:
    """The library's modules by their dotted names; a package stands for its ``__init__.py``."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(root: Path = ROOT) -> tuple[Import, ...]:
    """Every import of a module of ours by another; the files are read once."""
    known = modules(root)
    return tuple(
        found for module, path in known.items() for found in _imports_of(module, ast.parse(path.read_text()), known)
    )


def _imports_of(module: str, tree: ast.Module, known: dict[str, Path]) -> Iterator[Import]:
    def visit(node: ast.AST, deferred: bool, typing_only: bool) -> Iterator[Import]:
        if isinstance(node, ast.expr):
            return  # no statement lies inside an expression
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            deferred = True
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing_only = True
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                target = submodule if submodule in known else node.module
                yield Import(module, target, alias.name, node.lineno, deferred, typing_only)
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield Import(module, alias.name, "", node.lineno, deferred, typing_only)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, deferred, typing_only)

    return (found for found in visit(tree, False, False) if found.target != module)


def circles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """The groups of at least two nodes that all lead to each other (strongly connected components)."""
    import networkx

    graph = networkx.DiGraph(sorted(edges))
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def signatures(root: Path = ROOT) -> list[Signature]:
    """The public functions and methods of the library: none that begin with an underscore, but ``__init__``."""
    return [
        found
        for module, path in modules(root).items()
        if not any(part.startswith("_") for part in module.split("."))
        for found in _signatures_of(module, ast.parse(path.read_text()).body, "")
    ]


def _signatures_of(module: str, body: list[ast.stmt], inside: str) -> Iterator[Signature]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _signatures_of(module, node.body, f"{inside}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("_") and node.name not in ("__init__", "__call__"):
                continue
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            annotations = [argument.annotation for argument in every if argument] + [node.returns]
            has_any = any(
                isinstance(part, ast.Name) and part.id == "Any"
                for annotation in annotations
                if annotation is not None
                for part in ast.walk(annotation)
            )
            yield Signature(module, node.lineno, inside + node.name, has_any)


def functions(root: Path = ROOT) -> dict[str, bool]:
    """Each function and method as ``module:line name``, and whether one word names it.

    Properties and overloads are left out (what a thing is has a noun), and names that Python prescribes.
    """
    found = {}
    for module, path in modules(root).items():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("__"):
                continue
            if any("property" in name or "overload" in name for name in map(ast.unparse, node.decorator_list)):
                continue
            found[f"{module}:{node.lineno} {node.name}"] = "_" not in node.name.strip("_")
    return found


def shared_class_names(root: Path = ROOT) -> dict[str, list[str]]:
    """The class names that are defined in several modules, with these modules."""
    found: dict[str, list[str]] = {}
    for module, path in modules(root).items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    return {name: places for name, places in found.items() if len(places) > 1}


def single_user_modules(root: Path = ROOT) -> dict[str, str]:
    """The modules that exactly one other module imports, each with that user; without packages."""
    users: dict[str, set[str]] = {}
    for found in imports(root):
        users.setdefault(found.target, set()).add(found.source)
    files = {module: path for module, path in modules(root).items() if path.name != "__init__.py"}
    return {module: min(users[module]) for module in files if len(users.get(module, ())) == 1}


def modules_behind_a_plan(root: Path = ROOT) -> int:
    """How many modules of the library a first plan loads: a grammar in text, a planner, a provider string."""
    program = (
        "import sys; from formal_llm import CFG, Planner; "
        "Planner(CFG.from_string('T -> B I | i\\nI -> i\\nB -> b'), 'test:first').plan('a task'); "
        f"print(sum(name.split('.')[0] == {PACKAGE!r} for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    return int(done.stdout)


def main() -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--any", metavar="PLACE", help="list the public signatures with Any below this folder or file")
    parser.add_argument("--names", action="store_true", help="list what is named by one word, twice, or has one user")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    arguments = parser.parse_args()
    console = Console()
    if arguments.any:
        inside = Path(arguments.any).with_suffix("").as_posix().replace("/", ".")
        for signature in signatures(arguments.root):
            if signature.has_any and f"{signature.module}.".startswith(f"{inside}."):
                console.print(f"{signature.module}:{signature.line} {signature.name}", soft_wrap=True)
        return
    named, shared, single = (
        functions(arguments.root),
        shared_class_names(arguments.root),
        single_user_modules(arguments.root),
    )
    if arguments.names:
        for place, is_short in named.items():
            if is_short:
                console.print(place, soft_wrap=True)
        for name, places in shared.items():
            console.print(f"class {name}: {', '.join(places)}", soft_wrap=True)
        for module, user in single.items():
            console.print(f"{module} is imported by {user} only", soft_wrap=True)
        return
    table = Table("package", "files", "lines", "longest", "public signatures", "with Any", "deferred imports")
    known, found, edges = modules(arguments.root), signatures(arguments.root), imports(arguments.root)
    lengths = {module: path.read_text().count("\n") for module, path in known.items()}

    def row(name: str, inside: set[str]) -> None:
        table.add_row(
            name,
            str(len(inside)),
            f"{sum(lengths[m] for m in inside):,}",
            str(max(lengths[m] for m in inside)),
            str(sum(s.module in inside for s in found)),
            str(sum(s.has_any for s in found if s.module in inside)),
            str(sum(e.deferred for e in edges if e.source in inside)),
        )

    packages: dict[str, set[str]] = {}
    for module in known:
        packages.setdefault(".".join(module.split(".")[:2]), set()).add(module)
    for name, members in packages.items():
        row(name, members)
    row("all", set(known))
    console.print(table)
    console.print(
        f"{sum(named.values()) / len(named):.0%} of {len(named):,} functions are named by one word; "
        f"{len(shared)} class names are in several files; {len(single)} modules have a single user; a first plan loads "
        f"{modules_behind_a_plan(arguments.root)} modules"
    )
    files = {(e.source, e.target) for e in edges}
    console.print("circles of files:", [len(c) for c in circles(files)], *[f"\n  {c}" for c in circles(files)])


if __name__ == "__main__":
    main()
