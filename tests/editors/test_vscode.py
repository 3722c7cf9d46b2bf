"""The folder for Visual Studio Code: its files fit together, and its grammars colour what they should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from formal_llm.automata.notation import cfg_syntax, pda_lines
from formal_llm.guard.rules.rule_set import WORDS

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
GRAMMARS = {entry["path"].split("/")[-1].split(".")[0]: entry for entry in PACKAGE["contributes"]["grammars"]}


def coloured(kind: str, line: str) -> list[tuple[str, str]]:
    """The pieces of a line and their first scopes, as an editor finds them: the leftmost match, the first rule."""
    rules = [
        (rule["name"].split(".")[-1], re.compile(rule.get("match") or rule["begin"])) for rule in read(kind)["patterns"]
    ]
    found, at = [], 0
    while at < len(line):
        matches = [
            (match.start(), n, name, match) for n, (name, rule) in enumerate(rules) if (match := rule.search(line, at))
        ]
        if not matches:
            break
        _, _, name, match = min(matches, key=lambda one: one[:2])
        found.append((match[0].strip(), name))
        at = max(match.end(), at + 1)
    return found


def read(kind: str) -> dict:
    return json.loads((FOLDER / "syntaxes" / f"{kind}.tmLanguage.json").read_text(encoding="utf-8"))


def test_what_the_package_names_is_there() -> None:
    languages = {one["id"]: one for one in PACKAGE["contributes"]["languages"]}
    assert (FOLDER / PACKAGE["main"]).is_file()
    for kind, entry in GRAMMARS.items():
        assert (FOLDER / entry["path"]).is_file()
        assert read(kind)["scopeName"] == entry["scopeName"]
        assert languages[entry["language"]]["extensions"] == [f".{kind}"]
        assert (FOLDER / languages[entry["language"]]["configuration"]).is_file()
    said = (FOLDER / "extension.js").read_text(encoding="utf-8")
    assert all(name in said for name in languages)
    assert set(re.findall(r'settings.get\("(\w+)"\)', said)) == {
        name.removeprefix("formal-llm.") for name in PACKAGE["contributes"]["configuration"]["properties"]
    }


@pytest.mark.parametrize(("kind", "directives"), [("cfg", cfg_syntax.DIRECTIVES), ("pda", pda_lines.DIRECTIVES)])
def test_all_directives_are_coloured(kind, directives) -> None:
    for word in (*directives, "%import"):
        assert coloured(kind, f"{word} x")[0] == (word, "directive")


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        (
            "cfg",
            'S "a # b" -> x* (y{1,3} | some(a, b))? ε # end',
            [
                ("S", "head"), ('"a # b"', "double"), ("->", "rule"), ("*", "repetition"), ("{1,3}", "repetition"),
                ("|", "rule"), ("some", "selection"), ("?", "repetition"), ("ε", "empty"), ("# end", "number-sign"),
            ],
        ),
        ("cfg", "E -> E + T", [("E", "head"), ("->", "rule")]),
        ("cfg", "a minutes=20", [("=", "compare"), ("20", "numeric")]),
        ("pda", "q{t}, 'a b', ε -> r, X # c", [("{t}", "family"), ("'a b'", "single"), ("ε", "empty"),
                                               ("->", "transition"), ("# c", "number-sign")]),
        ("pda", "q, a, X -> q, ε", [("q", "state"), ("->", "transition"), ("ε", "empty")]),
        ("agent", '(Ask (:text "[#]") (:flags :env-input :world)) ; x', [("Ask", "state"), (":text", "section"),
            ('"[#]"', "double"), (":flags", "section"), (":env-input", "flag"), (":world", "flag"), ("; x", "line")]),
        (
            "guard", 'pay-out: pay_invoice.result[amount > 10.5 and to in {"a"}] with order = order_id | user # x',
            [("pay-out", "letter"), (".result", "source"), (">", "compare"), ("10.5", "numeric"), ("and", "word"),
             ("in", "word"), ('"a"', "double"), ("with", "word"), ("=", "compare"), ("|", "alternative"),
             ("user", "source"), ("# x", "number-sign")],
        ),
        (
            "guard", "rule slow warn for each job: at most 3 call within 10min",
            [("rule", "rule"), ("warn", "severity"), ("for each", "order"), ("at most", "order"), ("3", "numeric"),
             ("within", "order"), ("10min", "numeric")],
        ),
        ("guard", 'rule words: grammar "S -> a"', [("rule", "rule"), ("grammar", "notation"), ('"S -> a"', "double")]),
        ("guard", 'rule long: formula """', [("rule", "rule"), ("formula", "notation"), ('"""', "long")]),
        ("guard", "%unsure ask", [("%unsure", "directive")]),
        ("guard", '%import "a.guard"', [("%import", "directive"), ('"a.guard"', "double")]),
        ("guard", "s: t[inside(path, x) and when >= 2026-11-22 and not ok]",
            [("s", "letter"), ("inside", "call"), ("and", "word"), (">=", "compare"), ("2026-11-22", "numeric"),
             ("and", "word"), ("not", "word")]),
        ("agent", '(:import "a.agent")', [(":import", "section"), ('"a.agent"', "double")]),
        ("agent", "(until_2_* (next any Act) Stop)",
            [("until_2_*", "formula"), ("next", "formula"), ("any", "language")]),
    ],
)  # fmt: skip
def test_lines_are_coloured(kind, line, expected) -> None:
    assert coloured(kind, line) == expected


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_client_starts_what_the_settings_name(tmp_path: Path) -> None:
    """Run with node, in the place of the editor."""
    got = "({get: (name) => ({command: ['x', 'lsp'], charts: true})[name]})"
    client = "constructor(...all) { console.log(JSON.stringify(all)); } async start() { throw new Error('no x'); }"
    for name, text in {
        "vscode": f"exports.workspace = {{getConfiguration: () => {got}}};"
        "exports.window = {showErrorMessage: (said) => console.log(said)};",
        "vscode-languageclient/node": f"exports.LanguageClient = class {{ {client} }};",
    }.items():
        file = tmp_path / "node_modules" / name / "index.js"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    shutil.copy(FOLDER / "extension.js", tmp_path / "extension.js")
    code = "require('./extension.js').activate()"
    done = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    made, said = done.stdout.splitlines()
    assert json.loads(made)[2] == {"command": "x", "args": ["lsp"]}
    assert len(json.loads(made)[3]["documentSelector"]) == 6
    assert 'pip install "formal-llm[lsp]"' in said


def test_every_word_of_rules_for_tool_calls_is_coloured() -> None:
    """In the place where it is a word; elsewhere it may be a name."""
    lines = [
        "rule a block: never b or c after d", "rule a ask: 2 b before each c", "rule a log for each k: b after each c",
        "rule a: at least 1 b", "rule a: at most 1 b since c", "rule a: 5min between b", "rule a: budget b <= 5",
        'rule a: behaviour "b"', 'rule a: flowchart "b"', 'rule a: automaton "b"', 'rule a: file "b"', "tools a, b",
        "a: b until c", "rule a: only b or c", "rule a: b within 3 calls after c",
        'a: assistant | b[not c contains "d" or e starts with "f" or g ends with "h" or i like "j"]',
        "a: b[len(c[* where .d]) > 1]",
    ]  # fmt: skip
    found = {
        word for line in lines for part, name in coloured("guard", line) for word in part.split() if name != "rule"
    }
    more = {"rule", "tools", "warn", "user", "in", "and", "within", "with", "formula", "grammar", "result"}
    assert {*WORDS, "where"} <= found | more
