"""The papers' figures, for comparison with our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, NamedEntries, read_toml

_SHAPE = Keys(
    {
        "tables": Items(
            Keys(
                {
                    "source": str,
                    "model": str,
                    "measures": NamedEntries(str),
                    "notes": Items(str),
                    "rows": NamedEntries(NamedEntries(float)),
                },
                needed=("source", "model", "measures", "rows"),
            )
        )
    },
    needed=("tables",),
)


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes:
        source: the paper and the number of the table.
        model: the model.
        measures: for each data set, the measure of its figures, in percent.
        rows: for each method, its figure on each data set.
        notes: the differences from our own figures.
    """

    source: str
    model: str
    measures: Mapping[str, str]
    rows: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...] = ()


def published_tables() -> list[PublishedTable]:
    """Return the tables shipped with the library."""
    data = read_toml(authored.find("tasks", "questions") / "published.toml", _SHAPE)
    return [
        PublishedTable(one["source"], one["model"], one["measures"], one["rows"], tuple(one.get("notes", ())))
        for one in data["tables"]
    ]
