"""Writing grammars as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.quantities import format_amount
from formal_llm.automata.models.symbols import quote_text
from formal_llm.automata.models.written import Comment
from formal_llm.automata.notation.cfg_syntax import strip_comment
from formal_llm.automata.notation.comments import add_comments, add_outer_comments, collect_comments, nearest


def write_grammar(cfg: CFG) -> str:
    """The grammar in its notation, with the comments that it was read with; reading it back gives an equal grammar."""
    order = [f"%order {cfg.order}"] if cfg.order is not None else []
    lines = [
        add_comments(line, cfg.comments.get(line.split()[0] if line.startswith(("%start", "%order")) else line))
        for line in (f"%start {cfg.start}", *order, *cfg.limits.lines())
    ]
    described = [add_comments(line, cfg.comments.get(line)) for line in _write_terminals(cfg)]
    written = [*lines, "", *_write_rules(cfg), *([""] if described else []), *described]
    return "\n".join(add_outer_comments(written, cfg.comments)) + "\n"


def comments_of(cfg: CFG, text: str, anchors: Iterable[tuple[int, str]]) -> dict[str, Comment]:
    """The comments of a text, by what is printed for the statements of its grammar that they stand with.

    Args:
        cfg: the grammar.
        text: the text.
        anchors: the line and the key of each statement: a production, or after a zero byte the words of another one.
    """
    limits = cfg.limits.lines()
    terminals = {line.split(" ", 1)[0]: line for line in _write_terminals(cfg)}
    found = []
    for number, key in anchors:
        if key.startswith("\0"):
            key = nearest(key[1:].split(), limits, terminals)
        if key:
            found.append((number, key))
    return collect_comments(text, strip_comment, found)


def _write_terminals(cfg: CFG) -> Iterator[str]:
    """The lines of terminals with labels or numbers."""
    for name, symbol in cfg.symbols.items():
        if name in cfg.terminals:
            numbers = "".join(f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
            yield f"{name}{_write_description(cfg, name)}{numbers}"


def _write_rules(cfg: CFG) -> Iterator[str]:
    """The rules, a line each, and a line more where a comment stands between the productions of one."""
    line, previous, ended = "", None, False
    for production in cfg.authored:
        text = "" if production.text is None else f" {quote_text(production.text)}"
        body = f"{' '.join(production.body) or 'ε'}{text}"
        comment = cfg.comments.get(str(production))
        if production.head == previous and not ended and not (comment and comment.above):
            line += f" | {body}"
        else:
            if previous is not None:
                yield line
            if production.head == previous:
                line = f"    | {body}"
            else:
                # A label stands where the symbol has its first rule.
                first = production is cfg.by_head[production.head][0]
                line = f"{production.head}{_write_description(cfg, production.head) if first else ''} -> {body}"
        line = add_comments(line, comment)
        previous, ended = production.head, bool(comment and comment.beside)
    yield line


def _write_description(cfg: CFG, name: str) -> str:
    symbol = cfg.symbols.get(name)
    if symbol is None or not (symbol.label or symbol.description):
        return ""
    return f" {quote_text(symbol.label)}" + (f" {quote_text(symbol.description)}" if symbol.description else "")
