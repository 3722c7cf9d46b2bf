"""XML as a tree whose elements have places; safe for untrusted input.

The standard library's expat parses it. A document type is refused, so there are no entities to expand and nothing
outside the text is ever opened; depth and size of a text are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from formal_llm.automata.notation.source import Place, SourceText

#: The maximum depth and number of elements.
DEEPEST, MOST = 100, 200_000


@dataclass
class Element:
    """An element of a tree.

    Attributes:
        name: the name without the prefix.
        attributes: the attributes of the element's own standard, by name; attributes with a prefix are extensions.
        place: the place where it begins.
        children: the elements directly in it.
        text: the text directly in it.
        namespace: the URI of its vocabulary; empty if the text declares none.
        extensions: the attributes of other vocabularies, by name without prefix.
        is_standard: whether it belongs to the vocabulary of the root, or to none.
    """

    name: str
    attributes: Mapping[str, str]
    place: Place
    children: list[Element] = field(default_factory=list)
    text: str = ""
    namespace: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    is_standard: bool = True

    def list_children(self, *names: str) -> Iterator[Element]:
        """Return the elements directly in it that have one of these names."""
        return (child for child in self.children if child.name in names and child.is_standard)

    def get_attribute(self, name: str) -> str:
        """Return an attribute without surrounding whitespace; empty if it does not exist."""
        return self.attributes.get(name, "").strip()


def read_xml(source: SourceText) -> Element:
    """Parse a text and return the root of its tree.

    Raises:
        NotationError: it is not XML, it has a document type, or it is too deep or too large; with the place.
    """
    parser = expat.ParserCreate()
    document = Element("", {}, Place(1, 1))
    path = [document]
    scopes: list[dict[str, str]] = [{}]  # the URI of each prefix, outermost element first
    count = 0

    def get_place() -> Place:
        return Place(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)

    def refuse_doctype(*_: object) -> None:
        begins = source.place_of(max(source.text.find("<!DOCTYPE"), 0))
        source.fail_at("a document type is not read", begins, suggestion="leave the line <!DOCTYPE ...> out")

    def begin_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(path) > DEEPEST or count > MOST:
            limit = f"{DEEPEST} deep" if len(path) > DEEPEST else f"{MOST:,} elements"
            source.fail_at(f"this is larger than what is read: more than {limit}", get_place())
        prefix, _, plain = name.rpartition(":")
        declared = {key[6:]: value for key, value in attributes.items() if key == "xmlns" or key.startswith("xmlns:")}
        scope = {**scopes[-1], **declared}
        namespace = scope.get(prefix, prefix)
        scopes.append(scope)
        standard = path[1].namespace if len(path) > 1 else namespace
        own, others = dict[str, str](), dict[str, str]()
        for key, value in attributes.items():
            before, _, short = key.rpartition(":")
            if before != "xmlns" and key != "xmlns":
                (own if not before or scope.get(before, before) == standard else others)[short] = value
        ours = namespace in ("", standard)
        element = Element(plain, own, get_place(), namespace=namespace, extensions=others, is_standard=ours)
        path[-1].children.append(element)
        path.append(element)

    def end_element(_: str) -> None:
        path.pop()
        scopes.pop()

    def add_text(data: str) -> None:
        path[-1].text += data

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = begin_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(source.text.encode(), True)
    except expat.ExpatError as error:
        source.fail_at(f"this is no XML: {expat.ErrorString(error.code)}", Place(error.lineno, error.offset + 1))
    return document.children[0]
