"""Imports: ``%import "tools.cfg"`` reads the statements of another file as if they were at the end of this one.

The path is relative to the importing file. A file that several others import is read once; a cycle is an error.
The global declarations of an imported file (``%start``, ``%order``) apply if the importing file has none.

Behaviours import others by name, ``(:import "react.agent")``: :mod:`formal_llm.automata.notation.behaviour`.
"""

from __future__ import annotations

import re
from pathlib import Path

from formal_llm.authored.files import lines_of, read_text
from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError

#: The maximum number of files that a file may import, directly or indirectly.
MOST_FILES = 100
#: The maximum size of each of them, in bytes.
MOST_BYTES = 10_000_000
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_GROUP = re.compile(rf"\(\s*:import((?:\s+{_QUOTED})+)\s*\)")
_IMPORT = re.compile(r'[ \t\f]*%import(?!\w)[ \t\f]*(?:("(?:[^"\\]|\\.)*")[ \t\f]*(?:#.*)?|.*)')


def with_imports(source: SourceText, quoted: re.Pattern[str] | None = None) -> SourceText:
    """Return the text followed by its imports; the lines of the text itself keep their numbers.

    Args:
        source: the text.
        quoted: the pattern of quoted texts in this notation: no line inside one is an import.

    Raises:
        NotationError: a file cannot be read, imports itself, or begins with half a rule; or there are too many files.
    """
    if "%import" not in source.text:
        return source
    texts: list[tuple[str, str | None]] = []
    read: dict[Path, tuple[Path, ...]] = {}
    begun = Path(source.file).resolve() if source.file else None
    todo: list[tuple[SourceText, tuple[Path, ...]]] = [(source, () if begun is None else (begun,))]
    for part, way in todo:  # the list grows: files are read level by level, in the order in which they are named
        lines = part.text.split("\n")
        named: set[Path] = set()
        held = {
            line for found in (quoted.finditer(part.text) if quoted else ())
            for line in range(part.place_of(found.start()).line + 1, part.place_of(found.end()).line + 1)
        }  # fmt: skip
        for number, line in enumerate(lines, 1):
            found = _IMPORT.fullmatch(line)
            if found is None or number in held:
                continue
            lines[number - 1] = ""
            place = Place(number, line.index("%import") + 1)
            path = _resolve_path(part, found[1], place)
            if path in way:
                names = " imports ".join(one.name for one in (*way[way.index(path) :], path))
                part.fail_at(f"a circle of imports: {names}", place, suggestion="leave one of them out")
            if path in named:
                part.warn_at(f"{path.name} is imported twice; once is enough", place, stacklevel=5)
            elif path not in read:
                if len(read) >= MOST_FILES:
                    part.fail_at(f"more than {MOST_FILES} files are imported", place)
                read[path] = way
                todo.append((_read_import(part, found[1], path, place), (*way, path)))
            elif any(path == one for one in read) and _imports_back(path, way, todo):
                names = " imports ".join(one.name for one in (*way, path))
                part.fail_at(f"a circle of imports: {names}", place, suggestion="leave one of them out")
            named.add(path)
        texts.append(("\n".join(lines), part.file))
    whole = SourceText("\n".join(text for text, _ in texts), source.file, error=source.error)
    begins = 1
    for text, file in texts:
        whole.parts.append((begins, file))
        begins += text.count("\n") + 1
    return whole


def named_files(text: str) -> list[str]:
    """Return the files that a text names in its imports, as they are written."""
    lines = (_IMPORT.fullmatch(line) for line in lines_of(text)) if "%import" in text else ()
    groups = (name for group in _GROUP.findall(text) for name in re.findall(_QUOTED, group))
    return [unquote_text(name) for name in (*(found[1] for found in lines if found and found[1]), *groups)]


def imported_files(path: str | Path) -> list[Path]:
    """Return the files that a file imports, directly or indirectly, including files that cannot be read."""
    found: dict[Path, None] = {}
    todo = [Path(path)]
    for one in todo:  # the list grows
        try:
            text = read_text(one, most=MOST_BYTES)
        except NotationError:
            continue
        for name in named_files(text):
            new = one.parent / name
            if new.resolve() not in found and len(found) < MOST_FILES:
                found[new.resolve()] = None
                todo.append(new)
    return list(found)


def _resolve_path(part: SourceText, written: str | None, place: Place) -> Path:
    if not written or not unquote_text(written):
        part.fail_at("%import needs the name of a file, in quotes", place, suggestion='write: %import "tools.cfg"')
    return resolve_beside(part, unquote_text(written), place)


def resolve_beside(part: SourceText, name: str, place: Place) -> Path:
    """Resolve the name of a file relative to the file that imports it.

    Raises:
        NotationError: the text does not come from a file, or the path is absolute.
    """
    if part.file is None:
        part.fail_at("a text that comes from no file cannot import others: paths are relative to the file", place,
                  suggestion="read it with from_file, or name its place: from_string(text, file=...)")  # fmt: skip
    if Path(name).is_absolute():
        part.fail_at(f"{name} is an absolute path", place, suggestion="write it relative to the file that imports it")
    return (Path(part.file).parent / name).resolve()


def read_beside(part: SourceText, name: str, path: Path, place: Place) -> SourceText:
    """Read the text of an imported file.

    Raises:
        NotationError: it cannot be read.
    """
    try:
        text = read_text(path, part.error, MOST_BYTES)
    except NotationError as error:
        part.fail_at(f"{name} cannot be imported: {error.problem}", place, suggestion=error.suggestion)
    return SourceText.from_text(text, str(Path(part.file or "").parent / name), part.error)


def _read_import(part: SourceText, written: str, path: Path, place: Place) -> SourceText:
    source = read_beside(part, unquote_text(written), path, place)
    first = next((n for n, line in enumerate(source.text.split("\n"), 1) if line.split("#")[0].strip()), None)
    if first is not None and source.text.split("\n")[first - 1].lstrip().startswith("|"):
        source.fail_at("the file begins with '|', and there is no rule that it could go on with", Place(first, 1))
    return source


def _imports_back(path: Path, way: tuple[Path, ...], todo: list[tuple[SourceText, tuple[Path, ...]]]) -> bool:
    """Return whether a file that was already read imports, perhaps indirectly, one of the files that led here."""
    edges: dict[Path, set[Path]] = {}
    for part, above in todo:
        for line in part.text.split("\n"):
            found = _IMPORT.fullmatch(line)
            if found is not None and found[1] and part.file and above:
                edges.setdefault(above[-1], set()).add((Path(part.file).parent / unquote_text(found[1])).resolve())
    seen, waiting = {path}, [path]
    for one in waiting:  # the list grows
        for after in edges.get(one, set()) - seen:
            seen.add(after)
            waiting.append(after)
    return bool(way) and way[-1] in seen
