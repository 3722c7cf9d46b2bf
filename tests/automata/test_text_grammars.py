"""Grammars in the notations that providers read, against the grammar's own membership."""

from __future__ import annotations

import re
from contextlib import suppress

import lark
import pytest
from hypothesis import given

from formal_llm import CFG
from formal_llm.automata.models.symbols import Production
from formal_llm.automata.notation.text_grammars import cfg_to_gbnf, cfg_to_lark
from formal_llm.errors import GrammarError
from tests import oracles, strategies


def parses(parser: lark.Lark, word: tuple[str, ...]) -> bool:
    with suppress(lark.exceptions.LarkError):
        parser.parse("".join(f"{step}\n" for step in word))
        return True
    return False


def parser_of_gbnf(text: str) -> lark.Lark:
    """GBNF is Lark's notation with other signs, as far as it is used here."""
    return lark.Lark(re.sub(r'(?<!\\)""', "", text.replace(" ::= ", ": ").replace("root", "start")))


@given(strategies.grammars())
@strategies.examples(60)
def test_the_texts_are_the_words(cfg: CFG) -> None:
    try:
        written = cfg_to_lark(cfg)
    except GrammarError:
        assert not oracles.language(cfg, 4)
        return
    parsers = [lark.Lark(written)]
    with suppress(GrammarError):
        parsers.append(parser_of_gbnf(cfg_to_gbnf(cfg)))
    for word in oracles.all_words(oracles.alphabet(cfg), 3):
        for parser in parsers:
            assert parses(parser, word) == cfg.accepts(word)


def test_a_grammar_in_both_notations() -> None:
    cfg = CFG.from_string("S -> wash S | fold | ε\n%limit 3")
    assert cfg_to_lark(cfg) == 'start: "wash\\n" start | "fold\\n" | \n'
    assert cfg_to_gbnf(cfg) == 'root ::= "wash\\n" root | "fold\\n" | ""\n'


@pytest.mark.filterwarnings("ignore:.*can become")
def test_what_has_no_such_form() -> None:
    with pytest.raises(GrammarError, match="S has no words"):
        cfg_to_lark(CFG([Production("S", ("a", "S"))]))
    for rules in ("S -> S a | b", "S -> A b\nA -> S | c", "S -> E S | a\nE -> e | ε"):
        with pytest.raises(GrammarError, match="may begin with itself"):
            cfg_to_gbnf(CFG.from_string(rules))
        assert cfg_to_lark(CFG.from_string(rules))


def test_a_reader_of_gbnf_reads_it() -> None:
    gbnf_to_lark = pytest.importorskip("llguidance.gbnf_to_lark")
    cfg = CFG.from_string("S -> wash S | A\nA -> fold | iron A")
    assert "wash" in gbnf_to_lark.any_to_lark(cfg_to_gbnf(cfg))
