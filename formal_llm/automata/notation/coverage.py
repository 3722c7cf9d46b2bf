"""How a reader treats each part of another standard.

BPMN, SCXML, Mermaid and XState describe more than plans. Each element and attribute of such a standard is in one of the
tables of a :class:`Coverage`: it has a meaning here; it is harmless, for a reason; or it is left out with a warning, or
refused, since plans would change their meaning without it. A part in none of the tables also causes a warning, so
nothing in a file is ignored silently.

Elements are listed by name (``"userTask"``), attributes follow an ``@``: ``"boundaryEvent@cancelActivity"``, or
``"@id"`` for one that has the same meaning everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.automata.notation.xml_tree import Element

#: The reason for refusing history in every standard.
HISTORY = "which states were active before would have to be part of every configuration"
Treatment = Literal["meant", "harmless", "warned", "refused", "unknown"]


def by_name(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the reason for each name, given the names for each reason, separated by spaces."""
    return {name: reason for reason, names in reasons.items() for name in names.split()}


@dataclass(frozen=True)
class Coverage:
    """The coverage tables of one standard.

    Attributes:
        standard: its name, for messages.
        meant: the parts that the reader interprets, or for which it decides itself whether to warn.
        harmless: the parts that change no plan, each with the reason.
        warned: the parts that are left out with a warning, each with what is lost.
        refused: the parts that no file may contain, each with the reason.
    """

    standard: str
    meant: AbstractSet[str]
    harmless: Mapping[str, str]
    warned: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def get_treatment(self, name: str) -> Treatment:
        """Return how an element (``"task"``) or attribute (``"task@name"``) is treated."""
        for known in (name, f"@{name.partition('@')[2]}") if "@" in name else (name,):
            for table, treatment in self._list_tables():
                if known in table:
                    return treatment
        return "unknown"

    def _list_tables(self) -> tuple[tuple[AbstractSet[str], Treatment], ...]:
        refused, warned, harmless = self.refused.keys(), self.warned.keys(), self.harmless.keys()
        return (refused, "refused"), (warned, "warned"), (self.meant, "meant"), (harmless, "harmless")

    def _get_reason(self, name: str) -> str:
        both = {**self.warned, **self.refused}
        return both.get(name) or both[f"@{name.partition('@')[2]}"]

    def report_part(self, name: str, shown: str, source: SourceText, place: Place | None) -> Treatment:
        """Warn of a part that is left out or unknown, or refuse it.

        Args:
            name: the element or attribute, as in the tables.
            shown: the part as displayed in messages, such as ``"<inclusiveGateway> g1"``.
            source: the text, which warns and raises.
            place: the place where the part begins; None if the standard's reader has no places.

        Raises:
            NotationError: the part is refused.
        """
        treatment = self.get_treatment(name)
        if treatment == "refused":
            source.fail_at(f"{shown} is not covered: {self._get_reason(name)}", place)
        if treatment == "warned":
            source.warn_at(f"{shown} is left out: {self._get_reason(name)}", place, stacklevel=2)
        if treatment == "unknown":
            source.warn_at(f"{shown} is left out: {self.standard} has no such part", place, stacklevel=2)
        return treatment

    def check_tree(self, element: Element, source: SourceText, unknown: set[str] | None = None) -> None:
        """Report every element and attribute of an XML tree, outermost first.

        The content of an element that is harmless or left out belongs to it and is not reported again. Elements and
        attributes of other namespaces are extensions of the tools that wrote the file; they change no plan.

        Args:
            element: the root of the tree.
            source: the text, which warns and raises.
            unknown: the names of unknown parts that were reported before; each is reported once.

        Raises:
            NotationError: a part is refused.
        """
        unknown = set() if unknown is None else unknown
        if not element.is_standard or element.name in unknown:
            return
        name = element.get_attribute("name") or element.get_attribute("id")
        element_label = f"<{element.name}> {' '.join(name.split())}".rstrip()
        treatment = self.report_part(element.name, element_label, source, element.place)
        unknown |= {element.name} if treatment == "unknown" else set()
        if treatment != "meant":
            return
        for attribute in (f"@{name}" for name in element.attributes if f"@{name}" not in unknown):
            label = f"the attribute {attribute[1:]} of {element_label}"
            if self.report_part(element.name + attribute, label, source, element.place) == "unknown":
                unknown.add(attribute)
        for child in element.children:
            self.check_tree(child, source, unknown)
