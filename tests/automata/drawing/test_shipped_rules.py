"""How the shipped rules are laid out."""

import pytest

from formal_llm import authored
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.cli.sources import load
from tests.pictures.forms import laid_out, needs_dot

SHIPPED = ["openagi", "cooking", "daily", "risk", *sorted(authored.names("agents"))]


@needs_dot
@pytest.mark.parametrize("what", ["rules", "pda"])
@pytest.mark.parametrize("name", SHIPPED)
def test_texts_of_the_shipped_rules_do_not_overlap(name: str, what: str) -> None:
    """No box lies on another, and no label of an arrow on a box or another label, as Graphviz lays them out."""
    loaded = load(name)
    drawn = as_automaton(loaded.whole) if what == "pda" else loaded.rules
    picture = drawn.picture
    if len(picture.nodes) > 60:
        pytest.skip("the command draws none so large")
    for title, one in (areas := list(laid_out(picture.to_dot()).items())):
        for other_title, other in areas:
            if title < other_title:
                across = min(one[2], other[2]) - max(one[0], other[0])
                along = min(one[3], other[3]) - max(one[1], other[1])
                assert min(across, along) <= 1, (title, other_title)
