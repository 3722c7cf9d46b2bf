"""How many files of a folder that other tools wrote are read: accepted, accepted with a warning, or refused, and why.

    python benchmarks/foreign_files.py FOLDER
    python benchmarks/foreign_files.py FOLDER --words 5
    python benchmarks/foreign_files.py FOLDER --mermaid /tmp/mermaid

The files are those whose ending is one of BPMN, SCXML, XState and Mermaid (also ``.json`` and ``.xml``), and each is
read by its ending and its text, as ``formal-llm check`` reads it. Files with the same text count once. Printed is a
table of the outcomes; with ``--list`` a line for each file that is refused; with ``--words N`` N plans at random of
each that is accepted, to be compared with the file by hand.

With ``--mermaid`` (a folder with the npm packages mermaid and jsdom, as for ``benchmarks/charts.py``) each state
diagram is also given to Mermaid's own parser: what that does not take is counted apart, and a diagram is misread where
its states, the composite states around them, or its transitions and their labels are others than Mermaid's.
"""

from __future__ import annotations

import argparse
import random
import re
import warnings
from collections import Counter
from html import unescape
from pathlib import Path

from benchmarks.charts import ask_mermaid
from formal_llm import Lookahead
from formal_llm.automata.models.rules import automaton_of
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.state_diagram import Parser, is_state_diagram
from formal_llm.errors import FormalLLMError, GrammarWarning, NotationError

ENDINGS = (".bpmn", ".scxml", ".xstate", ".json", ".xml", ".mmd", ".mermaid")
#: A diagram: its states, each with the composite state around it, and its transitions with the letters of labels.
Drawn = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str, str]]]
#: What Mermaid finds in a state diagram.
_FOUND = """(({ nodes, edges }) => ({
  nodes: nodes.filter(n => n.shape !== 'note' && n.shape !== 'noteGroup').map(n => [n.id, n.parentId || '']),
  edges: edges.filter(e => e.arrowhead !== 'none').map(e => [e.start, e.end, e.label || '']),
}))(db.getData())"""


def theirs(nodes: list[list[str]], edges: list[list[str]]) -> Drawn:
    """A diagram as Mermaid found it; parts between two ``--`` count as what is around them."""
    around = {name: parent.removesuffix("----parent") for name, parent in nodes}
    parts = {name for name in around if name.startswith(("divider-id-", "id-"))}

    def outer(name: str) -> str:
        parent = around.get(name, "")
        return outer(parent) if parent in parts else parent

    states = {(name, outer(name)) for name in around if name not in parts and not name.endswith(("_start", "_end"))}
    links = {(_plain(one), _plain(other), _letters(label)) for one, other, label in edges}
    return frozenset(states), frozenset(links)


def ours(text: str) -> Drawn:
    """The same as our parser finds it."""
    parser = Parser(SourceText.from_text(text, None, NotationError))
    parser.parse_diagram()
    drawn = [node for node in parser.nodes.values() if node.name]
    states = {(node.name, node.scope.rpartition(":")[0]) for node in drawn if node.kind not in ("start", "end")}
    links = {(_plain(node.name), _plain(link.target), _letters(link.text)) for node in drawn for link in node.links}
    return frozenset(states), frozenset(links)


def _plain(name: str) -> str:
    return "[*]" if name.endswith(("_start", "_end", ":start", ":end")) else name


def _letters(label: str) -> str:
    return re.sub(r"<[^>]*>|[#&]\w+;|ﬂ°+\w+¶ß|\W", "", unescape(label))


def read(text: str, path: Path, number: int) -> tuple[str, list[str], list[str]]:
    """What becomes of a file: the outcome, the reasons for it, and some of its plans."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            rules = automaton_of(read_rules_text(text, path))
        except (FormalLLMError, ValueError, RecursionError) as error:
            reason = error.problem if isinstance(error, NotationError) else str(error).splitlines()[0]
            return "refused", [_general(reason)], []
    lookahead, rng = Lookahead(rules), random.Random(0)
    drawn = [lookahead.sample(rng, max_length=8) for _ in range(number)]
    plans = [" / ".join(word) if word is not None else "(none of up to 8 steps)" for word in dict.fromkeys(drawn)]
    told = [one.message for one in caught if isinstance(one.message, GrammarWarning)]
    return f"accepted{', warned' if told else ''}", sorted({_general(one.problem) for one in told}), plans


def _general(reason: str) -> str:
    """A reason without the names in it."""
    reason = re.sub(r" of the (state|transition|invoke) \S+|(?<=history) state \S+", r" of a \1", reason)
    reason = re.sub(r"'[^']*'(?! of )|\b\d+\b|\(did you mean .*", "...", reason)
    reason = re.sub(r"(?:(?<=> )|^)\S+ (?=is not covered|is left out|is sent)|(?<=raises ).*(?=:)", "... ", reason)
    reason = re.sub(r"^.* has no (.*: it begins with) .*", r"... has no \1 ...", reason)
    reason = re.sub(r"(?<=: )\S+$|(?<=id )\S+$", "...", reason)
    return reason if len(reason) < 90 else f"{reason[:87]}..."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mermaid", type=Path, help="a folder with the npm packages mermaid and jsdom")
    parser.add_argument("--list", action="store_true", help="report each file that is refused or misread")
    parser.add_argument("--words", type=int, default=0, help="how many plans to show of each accepted file")
    args = parser.parse_args()
    paths = [path for path in sorted(args.folder.rglob("*")) if path.suffix in ENDINGS and path.is_file()]
    texts = {path.read_text(encoding="utf-8-sig", errors="replace"): path for path in reversed(paths)}
    diagrams = [text for text in texts if is_state_diagram(text)] if args.mermaid else []
    found = ask_mermaid(diagrams, args.mermaid, _FOUND) if diagrams else []
    drawn = {text: one and theirs(one["nodes"], one["edges"]) for text, one in zip(diagrams, found, strict=True)}
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for text, path in sorted(texts.items(), key=lambda one: one[1]):
        outcome, why, plans = read(text, path, args.words)
        if text in drawn and drawn[text] is None:
            outcome, why = f"not taken by Mermaid, {outcome.split(',')[0]}", []
        elif text in drawn and outcome.startswith("accepted") and ours(text) != drawn[text]:
            outcome, why = "misread", list[str]()
        counts[outcome] += 1
        reasons.update((outcome, one) for one in why)
        if plans or (args.list and not outcome.startswith("accepted")):
            print(f"{path.relative_to(args.folder)}: {'; '.join([outcome, *why])}")
        for plan in plans:
            print(f"    {plan}")
    total = sum(counts.values())
    print(f"{'files':>6}  {'share':>6}  outcome")
    for outcome, number in sorted(counts.items()):
        print(f"{number:6}  {number / total:6.1%}  {outcome}")
        for (one, reason), count in reasons.most_common():
            if one == outcome:
                print(f"{'':16}  {count:5}  {reason}")
    print(f"{total:6}          in all")


if __name__ == "__main__":
    main()
