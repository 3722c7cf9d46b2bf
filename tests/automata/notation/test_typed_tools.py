"""The grammar of tools whose types fit."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Lookahead, Toolkit, tool
from formal_llm.automata.languages import cfg_warnings, differences
from formal_llm.errors import GrammarError, GrammarWarning
from formal_llm.packs.openagi.experts.settings import read_settings
from formal_llm.tools import Tool
from formal_llm.tools.kinds import kind_named


def make(name: str, *inputs: str, output: str = "text") -> Tool:
    return Tool(name, tuple(map(kind_named, inputs)), kind_named(output), lambda *_: "")


def openagi_tools() -> Toolkit:
    """The fifteen tools with the signatures of the experts, none of which is loaded."""
    settings = read_settings()
    loaders = {name: settings.get_loader(name) for name in settings.tools}
    return Toolkit([make(name, *one.inputs, output=one.output) for name, one in loaders.items()])


def bodies(cfg: CFG, names: dict[str, str]) -> set[tuple[str, ...]]:
    """The rules with each class written out, nonterminals under other names."""
    found = set()
    for production in cfg.productions:
        if production.head in cfg.classes and production.head not in names:
            continue
        first, *rest = production.body
        for name in [p.body[0] for p in cfg.by_head[first]] if first in cfg.classes and first not in names else [first]:
            found.add((production.head, name, *rest))
    return {tuple(names.get(name, name) for name in row) for row in found}


def test_the_shipped_grammar_of_openagi_is_what_its_signatures_say() -> None:
    shipped = CFG.from_file("grammars/openagi.cfg")
    made = CFG.from_tools(openagi_tools())
    assert bodies(made, {}) == bodies(shipped, {"T": "text", "I": "image"})
    assert (made.limits.default, set(made.limits.at_most)) == (1, {"input_image", "input_text"})
    found = differences(made, shipped, 4)
    assert found.equal
    assert found.counts[-1] == (4, 420, 420)
    assert made.order == "backward"
    assert not cfg_warnings(made)
    assert CFG.from_string(str(made)) == made
    # The toolkit agrees with the grammar that was made of it.
    openagi_tools().check(made)


def test_python_functions_with_hints() -> None:
    @tool
    def shout(text: str) -> str:
        """Puts a text in capitals."""
        return text.upper()

    @tool
    def join(one: str, other: str) -> str:
        return one + other

    made = CFG.from_tools(Toolkit([shout, join]))
    assert made.symbols["shout"].description == "Puts a text in capitals."
    assert made.accepts(["join", "shout", "input_text", "input_text"])
    assert not made.accepts(["input_text"])
    assert not made.accepts(["join", "input_text"])
    assert Lookahead(made).count() == 5  # either alone, shout on either side of join or around it


def test_inputs_and_names() -> None:
    tools = [make("caption", "image"), make("text", "text"), make("clock"), make("speak", "text", output="image")]
    made = CFG.from_tools(tools, {"photo": "image"}, uses=None)
    assert {"photo", "caption", "text", "clock", "speak"} == set(made.terminals)
    assert made.accepts(["text", "text", "caption", "speak", "clock"])
    assert not made.limits
    with pytest.warns(GrammarWarning, match="no plan can use caption: nothing gives it a value of kind image"):
        few = CFG.from_tools([make("caption", "image"), make("clock")], {})
    assert set(few.terminals) == {"clock"}


@pytest.mark.parametrize(
    ("tools", "inputs", "said"),
    [
        ([], None, "there is no tool"),
        ([make("a"), make("a")], None, "two tools are called a"),
        ([make("a", "text")], {"a": "text"}, "a tool and an input"),
    ],
)
def test_what_is_no_toolkit(tools: list[Tool], inputs: dict[str, str] | None, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        CFG.from_tools(tools, inputs)
    with pytest.warns(GrammarWarning), pytest.raises(GrammarError, match="no tool can be applied"):
        CFG.from_tools([make("a", "text")], {})
