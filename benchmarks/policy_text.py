"""How much of a policy's text ``read_policy`` reads, on the texts of SOPBench, without a model.

    python benchmarks/policy_text.py FOLDER [--domain NAME]... [--form structured|tree] [--show]

FOLDER is your copy of the benchmark; nothing of it is here. Each case brings the needs of its goal as a tree, which is
the oracle, and the benchmark's own code writes them as the text that its agents get. The reader gets that text, and our
procedure of the domain without the goal's needs. A tree is right if it has the same groups. A leaf is understood if it
is the same fact about the same values; it is misread if it is another one, or the opposite; else it is a hole.

The second table is harder: every sentence of a case turned into its opposite, as the benchmark words it. In the third
the fact of each sentence and of its opposite is not declared: what is understood then is a fact of the same meaning.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from formal_llm.guard.rules.expressions import BinaryOperation, Expression, Negation
from formal_llm.packs.sop.benchmark import DOMAINS, SopBench, SopCase, build_procedure, load_domain, read_tree
from formal_llm.procedures.policy import read_policy
from formal_llm.procedures.procedure import (
    NO_NEED,
    ConditionNeed,
    FactNeed,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
)  # fmt: skip
from formal_llm.procedures.sentences import SentenceReader

#: What "not" makes of a comparison.
_OPPOSITES = {"==": "!=", "!=": "=="}


@dataclass
class Score:
    """What was counted, and each leaf with its text, the verdict, and what was read."""

    counts: Counter[str] = field(default_factory=Counter)
    seen: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, text: str, expected: Need, found: Need, procedure: Procedure) -> None:
        """Count one text."""
        pairs = list(pair_leaves(expected, found))
        self.counts["trees"] += 1
        wrong = any(other is None for _, other in pairs)
        holes = not wrong and any(isinstance(one, NeedGroup) for one, _ in pairs)
        self.counts["tree wrong" if wrong else "tree with a hole" if holes else "tree right"] += 1
        for one, other in pairs:
            leaves = list_leaves(one)
            right = other is not None and str(simplify(one, procedure)) == str(simplify(other, procedure))
            verdict = "hole" if isinstance(other, Hole) else "understood" if right else "misread"
            self.counts["leaves"] += len(leaves)
            self.counts[verdict] += len(leaves)
            self.seen.update({(str(leaf), text): (verdict, str(other)) for leaf in leaves})


def pair_leaves(expected: Need, found: Need) -> Iterator[tuple[Need, Need | None]]:
    """Yield each leaf with what was read instead; a group with the hole that replaces it, or None if it is another."""
    if not isinstance(expected, NeedGroup) or isinstance(found, Hole):
        yield expected, found
    elif isinstance(found, NeedGroup) and (found.grouping, len(found.items)) == (
        expected.grouping,
        len(expected.items),
    ):
        for one, other in zip(expected.items, found.items, strict=True):
            yield from pair_leaves(one, other)
    elif (
        isinstance(found, NeedGroup) and found.grouping == expected.grouping and isinstance(found.items[-1], Hole)
    ):  # items that are one hole
        yield expected, found.items[-1]
    else:
        yield expected, None


def list_leaves(need: Need) -> list[Need]:
    """Return the leaves of a need, in order."""
    return [leaf for item in need.items for leaf in list_leaves(item)] if isinstance(need, NeedGroup) else [need]


def simplify(need: Need, procedure: Procedure) -> Need:
    """Replace "not" of a fact by the fact that means exactly that, where there is one."""
    if not (isinstance(need, NotNeed) and isinstance(need.inner, FactNeed)):
        return need
    inner = need.inner
    wanted = [str(negate(one)) for one in list_leaves(procedure.facts[inner.fact].need)]
    for name, fact in procedure.facts.items():
        if fact.parameters == procedure.facts[inner.fact].parameters and wanted == list(
            map(str, list_leaves(fact.need))
        ):
            return replace(inner, fact=name)
    return need


def negate(need: Need) -> Need:
    """Return the opposite of a condition, if one operator makes it."""
    match need:
        case NotNeed(inner):
            return inner
        case ConditionNeed(condition):
            return _negate_condition(condition)
    return NotNeed(need)


def _negate_condition(condition: Expression) -> Need:
    match condition:
        case Negation(inner):
            return ConditionNeed(inner)
        case BinaryOperation(sign, left, right) if sign in _OPPOSITES:
            return ConditionNeed(BinaryOperation(_OPPOSITES[sign], left, right))
    return NotNeed(ConditionNeed(condition))


def write_text(task: Any, case: SopCase, tree: Any, form: str) -> str:
    """Write a tree as the benchmark does."""
    return str(task.get_dep_verb(case.domain, tree, case.data["constraint_parameters"], form))


def find_singles(tree: Any) -> list[Any]:
    """Return the leaves of a tree of the benchmark."""
    return (
        [] if not tree else [tree] if tree[0] == "single" else [one for part in tree[1] for one in find_singles(part)]
    )


def measure_domain(bench: SopBench, domain: str, form: str) -> tuple[Score, Score, Score]:
    """Return the scores of the texts of a domain, of the opposites of its sentences, and without their facts."""
    task = import_module("env.task")
    declared = load_domain(domain)
    texts, opposites, without = Score(), Score(), Score()
    done: set[tuple[str, str, str]] = set()
    for case in bench.read_cases(domain):
        tree = case.data["constraints_original"]
        whole = build_procedure(declared, case)
        bare = replace(whole.tools[case.goal], need=NO_NEED)
        procedure = replace(whole, tools={**whole.tools, case.goal: bare})
        if tree:
            text = write_text(task, case, tree, form)
            found = read_policy(procedure, text, tool=case.goal).needs[case.goal]
            texts.add(text, read_tree(declared, tree), found, declared)
        for single in find_singles(tree):
            name = single[1].removeprefix("not ") if single[1].startswith("not ") else f"not {single[1]}"
            for one in (single, ["single", name, *single[2:]]):
                text, need = write_text(task, case, one, form), read_tree(declared, one)
                if (case.goal, str(need), name) in done:
                    continue
                done.add((case.goal, str(need), name))
                reader, tool = SentenceReader(procedure), procedure.tools[case.goal]
                if one is not single:
                    opposites.add(text, need, reader.read_sentence(text, tool)[0], declared)
                reader.statements = [
                    each for each in reader.statements if each.name not in str(need).split("(")[0].split()
                ]
                without.add(text, need, reader.read_sentence(text, tool)[0], declared)
    return texts, opposites, without


def print_scores(title: str, scores: dict[str, Score], console: Console) -> None:
    """Print a table."""
    table = Table(
        "domain", "trees", "right %", "holes", "wrong", "leaves", "understood %", "holes", "misread", title=title
    )
    for domain, score in scores.items():
        of = score.counts
        rates = [
            f"{100 * of[part] / max(1, of[whole]):.1f}"
            for part, whole in (("tree right", "trees"), ("understood", "leaves"))
        ]
        counts = [str(of[name]) for name in ("tree with a hole", "tree wrong", "leaves", "hole", "misread")]
        table.add_row(domain, str(of["trees"]), rates[0], *counts[:3], rates[1], *counts[3:])
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="your copy of the benchmark")
    parser.add_argument(
        "--domain", action="append", choices=DOMAINS, help="only this domain; several times for several"
    )
    parser.add_argument(
        "--form", default="structured", choices=("structured", "tree"), help="how the texts are written"
    )
    parser.add_argument("--show", action="store_true", help="list the leaves that were not understood")
    args = parser.parse_args()
    bench, console = SopBench(args.folder), Console()
    sys.path.insert(0, str(args.folder))
    both = {domain: measure_domain(bench, domain, args.form) for domain in args.domain or DOMAINS}
    for place, title in enumerate(
        ("The texts", "The opposite of each sentence", "The fact of each sentence taken away")
    ):
        print_scores(title, {domain: scores[place] for domain, scores in both.items()}, console)
    if args.show:
        for domain, scores in both.items():
            for score in scores:
                for (expected, _), (verdict, found) in sorted(score.seen.items()):
                    if verdict != "understood":
                        console.print(f"{domain}: {verdict}: {expected} <- {found}", markup=False, highlight=False)
    sys.exit(any(score.counts["misread"] for scores in both.values() for score in scores[:2]))


if __name__ == "__main__":
    main()
