"""The checkpoint of each expert and its settings: tables in TOML, the shipped file and an optional one of the user."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from formal_llm import authored
from formal_llm.authored.files import read_text
from formal_llm.authored.tables import TablePath, line_of, parse_toml
from formal_llm.errors import NotationError, ResourceNotFound, ToolkitError, did_you_mean
from formal_llm.packs.openagi.experts import diffusion, reading, restoration, text, vision
from formal_llm.packs.openagi.experts.expert import Expert
from formal_llm.packs.openagi.experts.loading import DTYPES

#: The environment variable that names a settings file of the user.
VARIABLE = "FORMAL_LLM_EXPERTS"
#: The kinds of experts by their names in TOML.
LOADERS: Mapping[str, type[Expert]] = MappingProxyType(
    {
        "swin2sr": restoration.Swin2SR,
        "instruct_pix2pix": diffusion.PictureEditing,
        "text_to_image": diffusion.TextToImage,
        "image_classification": vision.ImageClassification,
        "object_detection": vision.ObjectDetection,
        "image_captioning": vision.ImageCaptioning,
        "vqa_by_class": vision.AnswerByClass,
        "vqa_in_words": vision.AnswerInWords,
        "text_classification": text.TextClassification,
        "seq2seq": text.SequenceToSequence,
        "causal_lm": text.Continuation,
        "fill_mask": reading.FillMask,
        "extractive_qa": reading.ExtractiveAnswer,
    }
)
#: The settings that every expert has, with their default values.
COMMON: Mapping[str, Any] = MappingProxyType(
    {"checkpoint": "", "loader": "", "revision": "", "weights": "safetensors", "dtype": "float32", "batch": 1,
     "working_memory": 0, "may_lack": [], "generation": {}}
)  # fmt: skip
_MACHINE: Mapping[str, Any] = MappingProxyType({"device": "", "memory_gb": 0.0, "offline": False})
_CHOICES = {"weights": ("safetensors", "any"), "dtype": DTYPES}


@dataclass(frozen=True)
class ExpertSettings:
    """The complete tables of settings: one for each tool, and the table ``machine``."""

    tools: Mapping[str, Mapping[str, Any]]
    machine: Mapping[str, Any] = field(default_factory=lambda: dict(_MACHINE))

    def get_loader(self, tool: str) -> type[Expert]:
        """Return the kind of expert of a tool."""
        return LOADERS[self.tools[tool]["loader"]]


def read_settings(
    own: str | os.PathLike[str] | None = None, checkpoints: Mapping[str, str] | None = None
) -> ExpertSettings:
    """Read the shipped tables and apply the changes of the user.

    Args:
        own: a TOML file with tables of the same form, which change the shipped ones; by default the file that the
            environment variable ``FORMAL_LLM_EXPERTS`` names, if any.
        checkpoints: replacement checkpoints by tool; the revision of a replaced checkpoint is dropped.

    Raises:
        ResourceNotFound: there is no such file.
        ToolkitError: lists all errors in a file, and the names of unknown tools.
    """
    shipped, _ = _read_tables(authored.find("tasks", "openagi") / "experts.toml")
    tools = {name: dict(table) for name, table in shipped.get("tools", {}).items()}
    machine = {**_MACHINE, **shipped.get("machine", {})}
    place = own or os.environ.get(VARIABLE) or None
    if place is not None:
        changes, text = _read_tables(Path(place))
        if problems := list(_list_objections(changes, tools)):
            raise ToolkitError(
                [f"{os.fspath(place)}: {problem}{_format_line(text, path)}" for path, problem in problems]
            )
        machine.update(changes.get("machine", {}))
        for name, table in changes.get("tools", {}).items():
            tools[name] = _merge_table(tools.get(name, {}), table)
    if strangers := [name for name in checkpoints or {} if name not in tools]:
        raise ToolkitError([unknown("tool", name, tools, "checkpoints: ") for name in strangers])
    for name, checkpoint in (checkpoints or {}).items():
        tools[name] = _merge_table(tools[name], {"checkpoint": os.fspath(checkpoint)})
    return ExpertSettings(
        {name: {**COMMON, **LOADERS[table["loader"]].defaults, **table} for name, table in tools.items()}, machine
    )


def _merge_table(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a table of the user to another; one with another loader replaces it."""
    if changes.get("loader", table.get("loader")) != table.get("loader"):
        return dict(changes)
    kept = {name: value for name, value in table.items() if name != "revision" or "checkpoint" not in changes}
    return {**kept, **changes}


def _read_tables(file: Path) -> tuple[dict[str, Any], str]:
    """Read the tables of a file; return them and its text."""
    if not file.is_file():
        raise ResourceNotFound("file with the tables of experts", str(file))
    try:
        text = read_text(file)
        return parse_toml(text, str(file)), text
    except NotationError as error:  # not TOML, or not text
        where = "" if error.line is None else f" (line {error.line})"
        raise ToolkitError([f"{file}: {error.problem}{where}"]) from error


def _format_line(text: str, path: TablePath) -> str:
    line = line_of(text, path)
    return "" if line is None else f" (line {line})"


#: The path of a problem in a file, and its description.
_Objection = tuple[TablePath, str]


def _list_objections(data: Mapping[str, Any], shipped: Mapping[str, Mapping[str, Any]]) -> Iterator[_Objection]:
    """List the problems of a file of the user."""
    for name in data:
        if name not in ("machine", "tools"):
            yield (name,), unknown("table", name, ("machine", "tools"))
    machine, tools = data.get("machine", {}), data.get("tools", {})
    if not isinstance(machine, dict) or not isinstance(tools, dict):
        yield (), "machine and tools are tables"
        return
    yield from _wrong_values(machine, _MACHINE, ("machine",))
    for name, table in tools.items():
        path, here = ("tools", name), f"tools.{name}: "
        if not isinstance(table, dict):
            yield path, f"{here}it is a table, as in [tools.{name}]"
            continue
        whole = _merge_table(shipped.get(name, {}), table)
        if name not in shipped and not ("checkpoint" in table and "loader" in table):
            yield path, unknown("tool", name, shipped) + " A tool of your own names its checkpoint and its loader."
        elif not whole.get("checkpoint"):
            yield path, f"{here}another loader needs another checkpoint: name it"
        elif whole.get("loader") not in LOADERS:
            yield (*path, "loader"), unknown("loader", str(whole.get("loader")), LOADERS, here)
        else:
            yield from _wrong_table(name, table, whole["loader"], shipped)


def _wrong_table(
    name: str, table: Mapping[str, Any], loader: str, shipped: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Objection]:
    """List the problems of the settings of one tool."""
    kind, path, here = LOADERS[loader], ("tools", name), f"tools.{name}: "
    yield from _wrong_values(table, {**COMMON, **kind.defaults}, path)
    for setting, allowed in _CHOICES.items():
        if setting in table and table[setting] not in allowed:
            yield (*path, setting), f"{here}{setting} is one of {', '.join(allowed)}, not {table[setting]!r}"
    if isinstance(table.get("batch", 1), int) and table.get("batch", 1) < 1:
        yield (*path, "batch"), f"{here}batch counts from 1"
    if table.get("generation") and not kind.writes:
        yield (*path, "generation"), f"{here}the loader {loader} does not write, so generation says nothing"
    if name in shipped:
        old = LOADERS[shipped[name]["loader"]]
        if (old.inputs, old.output) != (kind.inputs, kind.output):
            signature = f"({', '.join(old.inputs)}) -> {old.output}"
            message = f"{here}the tool is {signature}, the loader {loader} ({', '.join(kind.inputs)}) -> {kind.output}"
            yield path, message


def _wrong_values(table: Mapping[str, Any], known: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Objection]:
    where = f"{'.'.join(path)}: "
    for setting, value in table.items():
        if setting not in known:
            yield (*path, setting), unknown("setting", setting, known, where)
            continue
        usual = known[setting]
        if type(value) is not type(usual) and not (isinstance(usual, float) and type(value) is int):
            yield (*path, setting), f"{where}{setting} is a {_NAMES[type(usual)]}, not {value!r}"


_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "table"}


def unknown(what: str, name: str, known: Collection[str], where: str = "") -> str:
    """Write the message about an unknown name."""
    near = did_you_mean(name, known)
    return f"{where}there is no {what} {name!r}" + (f"; did you mean {near!r}?" if near else f"; {', '.join(known)}")
