"""Names, texts and shapes of flowcharts, as Mermaid has them."""

from __future__ import annotations

import re

#: A place in a text that a task fills in.
PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: A node's name: a word; some signs may stand inside it.
ID = re.compile(r"\w(?:\w|[-./'+:](?=\w))*")
#: Words that Mermaid does not take for names.
RESERVED = ("end", "subgraph", "graph", "flowchart", "direction", "style", "linkStyle", "classDef", "class", "click")

#: The shapes of ``id@{ shape: name }``: groups of names for one shape, the first of which is the one used here.
_NAMES = """
rect proc process rectangle | rounded event | stadium pill terminal | fr-rect framed-rectangle subproc subprocess
subroutine | cyl cylinder database db | circle circ | odd | diam decision diamond question | hex hexagon prepare |
lean-r in-out lean-right | lean-l lean-left out-in | trap-b priority trapezoid trapezoid-bottom |
trap-t inv-trapezoid manual trapezoid-top | dbl-circ double-circle | sm-circ small-circle start |
fr-circ framed-circle stop | f-circ filled-circle junction | cross-circ crossed-circle summary |
notch-rect card notched-rectangle | bang | cloud | hourglass collate | bolt com-link lightning-bolt | delay
half-rounded-rectangle | h-cyl das horizontal-cylinder | lin-cyl disk lined-cylinder | curv-trap curved-trapezoid
display | div-rect div-proc divided-process divided-rectangle | doc document | tri extract triangle | win-pane
internal-storage window-pane | lin-doc lined-document | lin-rect lin-proc lined-process lined-rectangle shaded-process |
notch-pent loop-limit notched-pentagon | flip-tri flipped-triangle manual-file | sl-rect manual-input sloped-rectangle |
docs documents st-doc stacked-document | st-rect processes procs stacked-rectangle | flag paper-tape |
bow-rect bow-tie-rectangle stored-data | tag-doc tagged-document | tag-rect tag-proc tagged-process tagged-rectangle |
text
"""
#: Every name of a shape, with the name of that shape used here.
SHAPES = {name: group.split()[0] for group in _NAMES.split("|") for name in group.split()}


def plain(text: str) -> str:
    """A text as it is compared: every line without blanks around it and with single blanks in it."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def one_line(text: str) -> str:
    """A text of several lines on one."""
    return " ".join(text.split())
