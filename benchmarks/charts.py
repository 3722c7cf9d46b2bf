"""How many charts of a folder are read as they are drawn: accepted, refused with the reason, or misread.

    npm install --prefix /tmp/mermaid mermaid jsdom
    python benchmarks/charts.py FOLDER --mermaid /tmp/mermaid

The charts are the files ``.mmd`` and ``.mermaid`` of the folder and the blocks of Mermaid in its ``.md`` files; only
flowcharts are counted. With ``--mermaid`` (a folder with the npm packages mermaid and jsdom, and Node installed) each
is also given to the real parser: what it does not take is told as that, and a chart is misread where its nodes or
arrows are others than those that Mermaid finds. (An arrow counts without its direction: Mermaid does not tell
``<---`` from ``---``.) Printed: a table, and with ``--list`` a line for each chart that is refused or misread.

Files of other standards, and state diagrams, are counted by ``benchmarks/foreign_files.py``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from pathlib import Path
from warnings import catch_warnings

from formal_llm import Flowchart
from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError

_BLOCK = re.compile(r"^```+[ \t]*mermaid(?:-example)?[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FLOWCHART = re.compile(r"\s*(?:---\n.*?\n---\s*)?(?:%%[^\n]*\n\s*)*(?:flowchart|graph)\b", re.DOTALL)
#: The reasons for which charts are refused, as the docs name them, by what the message says.
REASONS = {
    "goes round in a circle": "no end: every way goes round in a circle",
    "has no answers": "a decision without answers",
    "has two answers": "a decision with the same answer twice",
    "cannot be reached from the start": "a node beside the start",
    "run side by side": "branches of a fork that lead into each other",
    "two texts": "two texts or shapes for one node",
    "two shapes": "two texts or shapes for one node",
    "the style of": "a style for a node that there is not",
    "has no nodes": "no nodes",
}
#: A drawing as a set of nodes and one of arrows.
Drawn = tuple[frozenset[str], frozenset[tuple[frozenset[str], str]]]
_REAL = """
import { createRequire } from 'module';
import { pathToFileURL } from 'url';
import { readFileSync } from 'fs';
const require = createRequire(process.argv[2] + '/x.js');
const { JSDOM } = require('jsdom');
const dom = new JSDOM('<!DOCTYPE html><body></body>');
globalThis.window = dom.window;
globalThis.document = dom.window.document;
const mermaid = (await import(pathToFileURL(process.argv[2] + '/node_modules/mermaid/dist/mermaid.core.mjs'))).default;
mermaid.initialize({ securityLevel: 'loose', logLevel: 5 });
const found = [];
for (const text of JSON.parse(readFileSync(0))) {
  try {
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    found.push(FOUND);
  } catch (error) { found.push(null); }
}
process.stdout.write(JSON.stringify(found));
"""
#: What Mermaid finds in a flowchart.
_FOUND = """{
  nodes: [...db.getVertices().keys()], groups: db.getSubGraphs().map(g => g.id),
  edges: db.getEdges().filter(e => e.stroke !== 'invisible').map(e => [e.start, e.end, e.text || '']),
}"""


def charts(folder: Path) -> Iterator[tuple[str, str]]:
    """The flowcharts of a folder, each with a name."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".md", ".mmd", ".mermaid") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        blocks = [text] if path.suffix != ".md" else [match[1] for match in _BLOCK.finditer(text)]
        for number, block in enumerate(blocks, 1):
            if _FLOWCHART.match(block):
                yield f"{path.relative_to(folder)}:{number}", block


def ask_mermaid(texts: list[str], folder: Path, found: str) -> list[dict[str, list[list[str]]] | None]:
    """What Mermaid's own parser makes of texts, as an expression in JavaScript collects it; None where it refuses."""
    script = folder / "ask_mermaid.mjs"
    script.write_text(_REAL.replace("FOUND", found))
    made = subprocess.run(
        ["node", str(script), str(folder.resolve())],
        input=json.dumps(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return list(json.loads(made.stdout[made.stdout.index("[") :]))


def ours(text: str) -> Drawn:
    """The nodes and arrows that our parser finds in a text."""
    drawing = parse(SourceText.from_text(text, None, NotationError))
    nodes = {v.id for v in drawing.vertices.values()} - drawing.groups.keys()
    return _drawn(nodes, [(link.source, link.target, link.text) for link in drawing.links])


def _drawn(nodes: set[str], edges: list[tuple[str, str, str]]) -> Drawn:
    # Texts are compared by their letters: Mermaid keeps tags and entities until it draws.
    told = {(frozenset((one, other)), re.sub(r"<[^>]*>|#\w+;|\W", "", unescape(text))) for one, other, text in edges}
    return frozenset(nodes), frozenset(told)


def theirs(found: dict[str, list[list[str]]]) -> Drawn:
    """The same of what Mermaid found."""
    names = {str(name) for name in found["nodes"]} - {str(name) for name in found["groups"]}
    return _drawn(names, [(one, other, text) for one, other, text in found["edges"]])


def outcome(read: Callable[[], object]) -> tuple[str, str]:
    """``accepted``, ``accepted with warnings``, or ``refused`` and why."""
    try:
        with catch_warnings(record=True, action="always") as warnings:
            read()
    except NotationError as error:
        message = str(error)
        reason = next((reason for mark, reason in REASONS.items() if mark in message), None)
        return ("refused", reason) if reason else ("not covered", message.split("\n")[0].split(": ", 1)[-1])
    return "accepted" + " with warnings" * bool(warnings), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mermaid", type=Path, help="a folder with the npm packages mermaid and jsdom")
    parser.add_argument("--list", action="store_true", help="tell each chart that is refused or misread")
    args = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    found = list(charts(args.folder))
    read = ask_mermaid([text for _, text in found], args.mermaid, _FOUND) if args.mermaid and found else None
    for number, (name, text) in enumerate(found):
        drawn = read[number] if read is not None else None
        if read is not None and drawn is None:
            counts["not taken by Mermaid", ""] += 1
            continue
        kind, why = outcome(partial(Flowchart.from_mermaid, text))
        if drawn is not None and "accepted" in kind and ours(text) != theirs(drawn):
            kind, why = "misread", ""
        counts[kind, why] += 1
        if args.list and "accepted" not in kind:
            print(f"{name}: {kind} {why}")
    print(f"{'charts':>6}  outcome")
    for (kind, why), count in sorted(counts.items(), key=lambda one: (one[0][0], -one[1])):
        print(f"{count:6}  {kind}{f': {why}' if why else ''}")
    print(f"{sum(counts.values()):6}  in all")


if __name__ == "__main__":
    main()
