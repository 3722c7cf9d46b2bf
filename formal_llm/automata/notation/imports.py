"""Imports: ``%import "tools.cfg"`` reads the statements of another file as if they stood at the end of this one.

The path is relative to the file that imports. A file that is imported by several is read once; a circle is an error.
What an imported file says of the whole (``%start``, ``%order``) counts where the importing file says nothing.

Behaviours import others by name, ``(:import "react.agent")``: :mod:`formal_llm.automata.notation.behaviour`.
"""

from __future__ import annotations

import re
from pathlib import Path

from formal_llm.authored.files import lines_of, read_text
from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError

#: How many files a file may import, directly and by others.
MOST_FILES = 100
#: How large each of them may be, in bytes.
MOST_BYTES = 10_000_000
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_GROUP = re.compile(rf"\(\s*:import((?:\s+{_QUOTED})+)\s*\)")
_IMPORT = re.compile(r'[ \t\f]*%import(?!\w)[ \t\f]*(?:("(?:[^"\\]|\\.)*")[ \t\f]*(?:#.*)?|.*)')


def with_imports(source: SourceText, quoted: re.Pattern[str] | None = None) -> SourceText:
    """The text with what it imports behind it; the lines of the text itself stay where they are.

    Args:
        source: the text.
        quoted: what is a text of its own in this notation: no line in it is an import.

    Raises:
        NotationError: a file that cannot be read, that imports itself, or that begins with half a rule; too many files.
    """
    if "%import" not in source.text:
        return source
    texts: list[tuple[str, str | None]] = []
    read: dict[Path, tuple[Path, ...]] = {}
    begun = Path(source.file).resolve() if source.file else None
    todo: list[tuple[SourceText, tuple[Path, ...]]] = [(source, () if begun is None else (begun,))]
    for part, way in todo:  # it grows: files are read in the order in which they are named, level by level
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
    """The files that a text names in its imports, as they are written."""
    lines = (_IMPORT.fullmatch(line) for line in lines_of(text)) if "%import" in text else ()
    groups = (name for group in _GROUP.findall(text) for name in re.findall(_QUOTED, group))
    return [unquote_text(name) for name in (*(found[1] for found in lines if found and found[1]), *groups)]


def imported_files(path: str | Path) -> list[Path]:
    """The files that a file names in its imports, and those that these name; what cannot be read is named too."""
    found: dict[Path, None] = {}
    todo = [Path(path)]
    for one in todo:  # it grows
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
    """The file of a name, relative to the one that imports it.

    Raises:
        NotationError: the text comes from no file, or the path is absolute.
    """
    if part.file is None:
        part.fail_at("a text that comes from no file cannot import others: paths are relative to the file", place,
                  suggestion="read it with from_file, or name its place: from_string(text, file=...)")  # fmt: skip
    if Path(name).is_absolute():
        part.fail_at(f"{name} is an absolute path", place, suggestion="write it relative to the file that imports it")
    return (Path(part.file).parent / name).resolve()


def read_beside(part: SourceText, name: str, path: Path, place: Place) -> SourceText:
    """The text of a file that another one imports.

    Raises:
        NotationError: it cannot be read.
    """
    try:
        text = read_text(path, part.error, MOST_BYTES)
    except NotationError as error:
        part.fail_at(f"{name} cannot be imported: {error.problem}", place, suggestion=error.suggestion)
    return SourceText.from_text(text, str(Path(part.file or "").parent / name), part.error)


def _read_import(part: SourceText, written: str, path: Path, place: Place) -> SourceText:
    made = read_beside(part, unquote_text(written), path, place)
    first = next((n for n, line in enumerate(made.text.split("\n"), 1) if line.split("#")[0].strip()), None)
    if first is not None and made.text.split("\n")[first - 1].lstrip().startswith("|"):
        made.fail_at("the file begins with '|', and there is no rule that it could go on with", Place(first, 1))
    return made


def _imports_back(path: Path, way: tuple[Path, ...], todo: list[tuple[SourceText, tuple[Path, ...]]]) -> bool:
    """Whether a file that was read before imports, by others, one on the way to here."""
    edges: dict[Path, set[Path]] = {}
    for part, above in todo:
        for line in part.text.split("\n"):
            found = _IMPORT.fullmatch(line)
            if found is not None and found[1] and part.file and above:
                edges.setdefault(above[-1], set()).add((Path(part.file).parent / unquote_text(found[1])).resolve())
    seen, waiting = {path}, [path]
    for one in waiting:  # it grows
        for after in edges.get(one, set()) - seen:
            seen.add(after)
            waiting.append(after)
    return bool(way) and way[-1] in seen
