"""Read the lines of a CSV file one at a time with their numbers; errors name the place."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

from formal_llm.authored.files import open_file
from formal_llm.errors import NotationError
from formal_llm.packs.travel.tables import Table, Value

#: Called with the number of bytes read and their total.
Progress: TypeAlias = Callable[[int, int], None]
#: The number of lines between reports of the progress.
_REPORT_EVERY = 20_000
_WAY_OUT = "is it a CSV file in UTF-8, with commas between its cells?"


def csv_lines(
    path: str | Path, table: Table[object], progress: Progress | None = None
) -> Iterator[tuple[int, Mapping[str, Value]]]:
    """Read the lines of a CSV file with a table; its first line names the columns.

    Args:
        path: the file, in UTF-8.
        table: the expected table.
        progress: called with the progress now and then, and at the end.

    Yields:
        The number of the line in the file (the first one if cells contain line ends), and its cells by the names of
        their columns.

    Raises:
        NotationError: the file is missing, not CSV, lacks a column, or a line has too few or too many cells.
    """
    name = str(path)
    try:
        file = open_file(path)
    except OSError as error:
        raise NotationError(f"the file cannot be read: {error.strerror}", file=name) from None
    with file:
        size = os.fstat(file.fileno()).st_size
        lines = csv.reader(TextIOWrapper(file, "utf-8-sig", newline=""), strict=True)
        begin = 1
        try:
            header = next(lines, [])
            if not any(header):
                raise NotationError("the file is empty", file=name, suggestion=_WAY_OUT)
            table.check_header(header, name)
            # A column without a name is the row number, which the published files contain.
            width = len(header)
            begin = lines.line_num + 1
            for count, cells in enumerate(lines, 1):
                if len(cells) != width:
                    if not cells:
                        begin = lines.line_num + 1
                        continue
                    raise NotationError(
                        f"the line has {len(cells)} cells, the header {width}", file=name, line=begin,
                        source_line=",".join(cells), suggestion="a text with a comma in it stands between quotes",
                    )  # fmt: skip
                yield begin, dict(zip(header, cells, strict=True))
                begin = lines.line_num + 1
                if progress is not None and count % _REPORT_EVERY == 0:
                    progress(min(file.tell(), size), size)
        except csv.Error as error:
            raise NotationError(f"this is no CSV: {error}", file=name, line=begin, suggestion=_WAY_OUT) from None
        except UnicodeDecodeError as error:
            raise NotationError(
                f"this is no text in UTF-8 (byte {error.object[error.start]:#04x} cannot be read)",
                file=name,
                line=begin,
                suggestion=_WAY_OUT,
            ) from None
        if progress is not None:
            progress(size, size)
