"""Readers of the few forms in which pictures are written: Mermaid, Graphviz, SVG."""

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot) is not installed")


#: The lines that a Mermaid flowchart of ours is made of; a label holds no ASCII sign that means anything to Mermaid.
LABEL = r"(?:[^\x00-+./:-@\[-`{-~]|#\d+;|[ _]|<br/>)*"


MERMAID_LINE = re.compile(
    r"flowchart (LR|TB)"
    rf'|    n\d+(\("{LABEL}"\)|\["{LABEL}"\]|\[\["{LABEL}"\]\]|\{{"{LABEL}"\}}'
    rf'|\(\["{LABEL}"\]\)|\(\("{LABEL}"\)\)|\(\(\("{LABEL}"\)\)\))'
    rf'|    n\d+ (-->|-\.->)(\|"{LABEL}"\|)? n\d+'
    r"|    classDef \w+ fill:#\w{6},stroke:#\w{6},color:#\w{6},stroke-width:[\d.]+px(,stroke-dasharray:4 3)?"
    r"|    class n\d+(,n\d+)* \w+"
    r"|    linkStyle \d+(,\d+)* stroke:#\w{6},stroke-width:[\d.]+px"
)


def check_mermaid(text: str) -> None:
    lines = text.rstrip("\n").split("\n")
    if lines[0] == "---":
        assert re.fullmatch(r'title: "(?:[^"\\\x00-\x1f]|\\.)*"', lines[1])
        assert lines[2] == "---"
        lines = lines[3:]
    for line in lines:
        assert MERMAID_LINE.fullmatch(line), line


def mermaid_labels(text: str) -> list[str]:
    """What a reader sees: entities decoded, line ends as blanks."""
    quoted = re.findall(r'"((?:[^"])*)"', text.split("flowchart", 1)[1])
    return [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label.replace("<br/>", "\n")) for label in quoted]


def check_dot(text: str) -> list[str]:
    """Reads the few forms of Graphviz' language that we write; the texts of the HTML-like labels."""
    labels = []
    rest = text
    while (at := rest.find("label=<")) >= 0:
        depth, end = 0, at + len("label=")
        while True:
            depth += {"<": 1, ">": -1}.get(rest[end], 0)
            end += 1
            if not depth:
                break
        markup = rest[at + len("label=<") : end - 1]
        tree = ElementTree.fromstring(f"<x>{markup}</x>")
        labels.append("".join(tree.itertext()).replace("\\\\", "\\"))
        rest = rest[:at] + "label=_" + rest[end:]
    assert rest.startswith("digraph {\n")
    assert rest.endswith("\n}\n")
    assert rest.count('"') % 2 == 0
    assert not re.search(r'[<>](?!\s*n\d)(?!")', rest.replace("->", ""))
    return labels


def svg_text(svg: str) -> str:
    """All text of an SVG picture without blanks, since lines are broken."""
    return squeeze("".join(ElementTree.fromstring(svg).itertext()))


def squeeze(text: str) -> str:
    return "".join(text.split())


def laid_out(dot: str) -> dict[str, tuple[float, float, float, float]]:
    """Where Graphviz puts boxes and the plates of labels: left, bottom, right, top, in points."""
    done = subprocess.run(["dot", "-Tjson"], input=dot, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    areas = {}
    for number, node in enumerate(found["objects"]):
        (x, y), width, height = (
            map(float, node["pos"].split(",")),
            float(node["width"]) * 72,
            float(node["height"]) * 72,
        )
        areas[f"box {number}"] = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    for number, edge in enumerate(found["edges"]):
        points = [point for shape in edge.get("_ldraw_", ()) if shape["op"] in "pP" for point in shape["points"]]
        if points:
            across, along = zip(*points, strict=True)
            areas[f"label {number}"] = (min(across), min(along), max(across), max(along))
    return areas
