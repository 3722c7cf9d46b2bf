"""Rule files: read, printed, read back, and refused with the place and the way out."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import NotationError
from formal_llm.guard.rules import reading
from formal_llm.guard.rules.reading import load_parser, read_rules

SHOP = '''# shop
pay: pay_invoice[amount > 100 and currency in {EUR, "US D"} or not has(x.y[0].z)]
    with order = order_id, cost = amount * 2 - -1
lines: pay_invoice[lines[.id == order_id or .old].n > sum(lines[* where .n > 3].parts[*].n)]
approved: approve.result[ok and (last(pay.cost) >= 1.50 or pay(order_id))] with order = order_id
yes: user[lower(text) contains "yes" and time(now) in 9:00..17:00 and date(now) < 2026-01-31]
seen: read.result with text = returned
leak: send[stems_from(arguments.body, seen) or not stems_from(to, seen)]
tools search, "my.tool", "rule"
rule first ask for each order: 2 approved before each pay
    "Ask a person."
rule "at most" warn: at most 3 search or "my.tool" within 1h
rule spent log: budget cost <= 500.50
rule later: never search after yes
rule calm: 90s between search
rule f: formula """(not (eventually (next search "my.tool")))"""
rule since: at most 2 search since yes
rule end: search after each yes
rule known: only pay or search or "my.tool" or "rule"
same: swap[all(old in olds, new in items[*].id, old != new and last(seen[.text contains old].text) == new)]
rule soon: search within 3 calls after yes
rule quick: search or lines within 10min after yes
rule next: search within 1 call after "my.tool"
%limit 3 search
%unsure ask
'''


def test_what_is_printed_is_read_back() -> None:
    rules = read_rules(SHOP)
    assert read_rules(str(rules)) == rules
    assert [rule.severity for rule in rules.rules][:3] == ["ask", "warn", "log"]
    assert rules.rules[0].says == "Ask a person."
    assert rules.unsure == "ask"


def test_of_several_lines_the_strictest_counts() -> None:
    two = "%unsure block\n%unsure ask  # a person\ntools pay\nrule p: never pay\n"
    assert read_rules(two).unsure == "block"
    assert read_rules("tools pay\nrule p: never pay\n").unsure is None


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a: p[all(x in xs)]\nrule x: never a", 1, 6, "all takes different names"),
        ("a: p[all(x in xs, x in ys, x > 1)]\nrule x: never a", 1, 6, "all takes different names"),
        ("a: p[all(x.y in xs, x > 1)]\nrule x: never a", 1, 6, "all takes different names"),
        ("a: p with k = k\nb: p[last(a[.n == 1].k) == 1]\nrule x: never b", 2, 11, "a gives no n"),
        ("a: p with k = k\nb: p[last(a[* where .k == 1].k) == 1]\nrule x: never b", 2, 6, "last takes a field"),
        ("ok: q.result\npay: p[stems_from(a, ok)]\nrule x: never pay", 2, 8, "a letter that gives fields"),
        ("pay: p[stems_form(a, ok)]\nrule x: never pay", 1, 8, "did you mean stems_from?"),
        ("ok: q.result\nrule x: only ok", 2, 6, "no call is ok"),
        ("pay: p with k = k\nrule x for each k: only pay", 2, 6, "leave out for each"),
        ("pay: p\nrule x: pay within 3 cals after pay", 2, 22, "did you mean calls?"),
        ('"* but pay": p\nrule x: never "* but pay"', 1, 1, "no letter begins with '* but '"),
        ("pay: pay\nrule x: never pya", 2, 15, "did you mean pay?"),
        ("pay: pay\nrule x: nevr pay", 2, 14, "unexpected 'pay'"),
        ("pay: p[a = 3]\nrule x: never pay", 1, 10, "equality is written =="),
        ("pay: p[a > \nrule x: never pay", 1, 11, "too early"),
        ("pay: p[leng(a) > 3]\nrule x: never pay", 1, 8, "did you mean len?"),
        ("ok: q with k = k\npay: p[a > 3 and ok(k, a)]\nrule x: never pay", 2, 18, "ok gives fewer fields (k)"),
        ("pay: p[a > 'x']\nrule x: never pay", 1, 12, "double quotes"),
        ("pay: p\npay: q\nrule x: never pay", 2, 1, "the first is in line 1"),
        ("pay: p\nrule x: never pay\nrule x: never pay", 3, 6, "another name"),
        ("pay: p with a = b\nrule x for each c: never pay", 2, 17, "no letter gives c"),
        ("pay: p[a == 2026-02-30]\nrule x: never pay", 1, 13, "no date"),
        ("pay: p\n%limit 3 pya", 2, 1, "did you mean pay?"),
        ("pay: p\n%limt 3 pay", 2, 1, "did you mean %limit?"),
        ("pay: p\n%limit * pay", 2, 1, "here a limit names its letters"),
        ("pay: p\n%unsure refuse\nrule x: never pay", 2, 1, "%unsure says one of block, ask, allow"),
        ("pay: p\n%unsure\nrule x: never pay", 2, 1, "%unsure says one of block, ask, allow"),
        ("pay: p[" + "not " * 70 + "a]\nrule x: never pay", 1, None, "deep"),
        ("pay: p[a[b[.x == 1].y == .z]]\nrule x: never pay", 1, 12, "within another one"),
        ("pay: p[.x == 1]\nrule x: never pay", 1, 8, "items[.x == 1]"),
        ("pay: p[a[1 + 2] == 1]\nrule x: never pay", 1, 10, "a field of an item has a dot"),
        ("pay: p[a[* where x == 1] == 1]\nrule x: never pay", 1, 18, "a field of an item has a dot"),
        ("pay: p", None, None, "no rules"),
    ],
)
def test_errors_show_the_place(text: str, line: int | None, column: int | None, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_rules(text)
    assert caught.value.line == line
    assert column is None or caught.value.column == column
    assert said in str(caught.value)


@given(st.text(alphabet='ab:[]()"%\n =<.0,{}andorule#', max_size=40))
def test_nothing_but_its_own_error(text: str) -> None:
    try:
        rules = read_rules("a: a\nb: b\nrule a: a before b\n" + text)
    except NotationError:
        return
    assert read_rules(str(rules)) == rules


def test_conditions() -> None:
    text = "x: t[(a or b) and not (c and d) and a - (b - c) > 2 * (a + b)]"
    assert str(read_rules(text + "\nrule r: never x")).split("\n")[0] == text


def test_tables_that_are_kept_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    wanted = load_parser().parse(SHOP)
    assert load_parser.__wrapped__().parse(SHOP) == wanted  # there is no folder to keep them in
    folder = Path(cache_from_source(reading.__file__)).parent
    folder.mkdir(parents=True)
    made = load_parser.__wrapped__()
    (kept,) = folder.glob("guard-*.lark")
    loaded = load_parser.__wrapped__()
    for parser in (made, loaded):
        tree = parser.parse(SHOP)
        assert tree == wanted
        assert [one.meta.line for one in tree.iter_subtrees()] == [one.meta.line for one in wanted.iter_subtrees()]
    kept.write_bytes(kept.read_bytes()[:1000])  # another process is writing it
    assert load_parser.__wrapped__().parse(SHOP) == wanted
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept.unlink()
    load_parser.__wrapped__()
    assert not kept.exists()
