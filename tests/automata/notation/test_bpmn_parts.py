"""What is made of each part of BPMN 2.0."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from formal_llm.automata.notation.bpmn_parts import COVERAGE

#: Each element that may be in a process or beside it, with its attributes where it means something: the names that
#: the schema has.
NAMES = {
    line.split()[0]: line.split()[1:]
    for line in Path(__file__).with_name("bpmn_names.txt").read_text().splitlines()
    if not line.startswith("#")
}
#: A folder with the schema of the standard (BPMN20.xsd and Semantic.xsd), for the check that the names are all.
SCHEMA = os.environ.get("BPMN_SCHEMA", "")
_XSD = "{http://www.w3.org/2001/XMLSchema}"


@pytest.mark.parametrize("element", NAMES)
def test_each_element_and_attribute_is_in_a_table(element: str) -> None:
    treatment = COVERAGE.get_treatment(element)
    assert treatment != "unknown"
    parts = [f"{element}@{name}" for name in NAMES[element]] if treatment == "meant" else []
    assert [part for part in parts if COVERAGE.get_treatment(part) == "unknown"] == []


def test_the_tables_hold_nothing_else() -> None:
    tables = COVERAGE.meant | COVERAGE.harmless.keys() | COVERAGE.warned.keys() | COVERAGE.refused.keys()
    attributes = {f"@{name}" for names in NAMES.values() for name in names}
    assert tables - NAMES.keys() - attributes == set()


class Schema:
    """Which elements and attributes each element may have."""

    def __init__(self, *paths: Path) -> None:
        self.types: dict[str, ElementTree.Element] = {}
        self.elements: dict[str, ElementTree.Element] = {}
        self.instead: dict[str, list[str]] = {}
        for path in paths:
            root = ElementTree.parse(path).getroot()
            self.types |= {one.get("name", ""): one for one in root.findall(f"{_XSD}complexType")}
            for element in root.findall(f"{_XSD}element"):
                self.elements[element.get("name", "")] = element
                self.instead.setdefault(_local(element.get("substitutionGroup")), []).append(element.get("name", ""))

    def may_stand_for(self, name: str) -> set[str]:
        """The elements that may be where the schema names this one."""
        element = self.elements.get(name)
        kind = self.types.get(_local(element.get("type"))) if element is not None else None
        abstract = kind is None or kind.get("abstract") == "true"
        return {name for _ in range(not abstract)}.union(*map(self.may_stand_for, self.instead.get(name, [])))

    def content(self, kind: str) -> tuple[dict[str, str], set[str]]:
        """The elements in a type, each with its type, and its attributes."""
        elements: dict[str, str] = {}
        attributes: set[str] = set()
        found = self.types.get(_local(kind))
        for part in found.iter() if found is not None else ():
            if part.tag == f"{_XSD}extension":
                elements |= self.content(part.get("base", ""))[0]
                attributes |= self.content(part.get("base", ""))[1]
            elif part.tag == f"{_XSD}attribute":
                attributes.add(part.get("name", ""))
            elif part.tag == f"{_XSD}element" and part.get("name"):
                elements[part.get("name", "")] = part.get("type", "")
            elif part.tag == f"{_XSD}element":
                names = self.may_stand_for(_local(part.get("ref")))
                elements |= {name: self.elements[name].get("type", "") for name in names}
        return elements, attributes


def _local(name: str | None) -> str:
    return (name or "").rpartition(":")[2]


@pytest.mark.skipif(not SCHEMA, reason="the environment variable BPMN_SCHEMA names no folder with BPMN20.xsd")
def test_the_names_are_those_of_the_schema() -> None:
    schema = Schema(Path(SCHEMA, "Semantic.xsd"), Path(SCHEMA, "BPMN20.xsd"))
    found: dict[str, list[str]] = {}
    todo = [("definitions", "tDefinitions")]
    for name, kind in todo:
        if name not in found:
            # An expression is of the type below where it names its language.
            elements, attributes = schema.content("tFormalExpression" if _local(kind) == "tExpression" else kind)
            meant = COVERAGE.get_treatment(name) == "meant"
            found[name] = sorted(attributes) if meant else []
            todo += elements.items() if meant else ()
    assert found == NAMES
