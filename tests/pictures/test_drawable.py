"""What can be drawn, its captions and parts."""

import subprocess
import sys
from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Lookahead
from formal_llm.automata.drawing import cfg_picture, flowchart_picture, pda_picture
from formal_llm.errors import MissingDependency
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Arrow, Box, Picture, cut_lines, number_text, printable, shorten, wrap_text
from tests.automata.charts import RETURNS
from tests.pictures.forms import check_dot, check_mermaid, needs_dot

GRAMMAR = CFG.from_string('S -> a S "go on" | T\nT -> b | c')


class Pipeline(Drawable):
    """Boxes in a row, with a picture of its own."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @property
    def picture(self) -> Picture:
        boxes = tuple(Box(name, name.upper(), "tool") for name in self.names)
        return Picture(boxes, tuple(Arrow(one.id, other.id, "then") for one, other in pairwise(boxes)))


class TestPicture:
    def test_unknown_things_have_no_picture(self) -> None:
        for ask in (lambda: Drawable().picture, Drawable().to_networkx):
            with pytest.raises(TypeError, match="no picture is known of a"):
                ask()

    def test_a_lookahead_draws_what_it_looks_at(self) -> None:
        lookahead = Lookahead(GRAMMAR)
        assert lookahead.picture == PDA.from_cfg(GRAMMAR).picture
        assert repr(lookahead) == f"<Lookahead over {PDA.from_cfg(GRAMMAR)!r}>"

    def test_the_kinds_of_rules(self) -> None:
        pda, behaviour = PDA.from_cfg(GRAMMAR), Behaviour.load("react")
        assert GRAMMAR.picture == cfg_picture(GRAMMAR)
        assert pda.picture == pda_picture(pda)
        assert RETURNS.picture == flowchart_picture(RETURNS)
        assert behaviour.picture == pda_picture(behaviour.pda)


class TestGraph:
    def test_of_what_has_a_picture_only_it_is_boxes_and_arrows(self) -> None:
        graph = Pipeline("a", "b", "c").to_networkx()
        assert isinstance(graph, networkx.MultiDiGraph)
        assert dict(graph.nodes(data="label")) == {"a": "A", "b": "B", "c": "C"}
        assert dict(graph.nodes(data="kind")) == dict.fromkeys("abc", "tool")
        assert list(graph.edges(data="label")) == [("a", "b", "then"), ("b", "c", "then")]

    def test_of_a_flowchart(self) -> None:
        graph = RETURNS.to_networkx()
        assert set(graph.nodes) == {node.id for node in RETURNS.nodes}
        assert sorted(graph.edges(data="label")) == sorted(
            (source, e.target, e.text) for e in RETURNS.edges for source in e.sources
        )

    def test_of_a_behaviour_is_that_of_its_automaton(self) -> None:
        behaviour = Behaviour.load("react")
        assert set(behaviour.to_networkx().nodes) == set(behaviour.pda.states)


class TestForms:
    @pytest.mark.parametrize("drawn", [Pipeline("a", "b"), GRAMMAR, PDA.from_cfg(GRAMMAR), Behaviour.load("react")])
    def test_are_those_of_the_picture(self, drawn: Drawable) -> None:
        assert drawn.to_mermaid() == drawn.picture.to_mermaid()
        assert drawn.to_dot() == drawn.picture.to_dot()
        check_mermaid(drawn.to_mermaid())
        check_dot(drawn.to_dot())

    def test_without_graphviz(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        for drawn in (GRAMMAR, PDA.from_cfg(GRAMMAR)):
            with pytest.raises(MissingDependency, match=r"install Graphviz.*Mermaid or DOT") as caught:
                drawn.to_svg()
            assert "\n" not in str(caught.value)
            with pytest.raises(MissingDependency, match="a PNG picture needs"):
                drawn.to_png()
            assert "image/svg+xml" not in drawn._repr_mimebundle_()
            check_mermaid(drawn.to_mermaid())
            check_dot(drawn.to_dot())

    @needs_dot
    def test_png(self) -> None:
        assert GRAMMAR.to_png().startswith(b"\x89PNG\r\n")

    @needs_dot
    def test_a_notebook_is_given_text_mermaid_and_svg(self) -> None:
        assert GRAMMAR._repr_mimebundle_() == {
            "text/plain": repr(GRAMMAR), "text/vnd.mermaid": GRAMMAR.to_mermaid(), "image/svg+xml": GRAMMAR.to_svg(),
        }  # fmt: skip

    def test_only_what_is_wanted_is_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Picture, "to_svg", None)
        assert GRAMMAR._repr_mimebundle_(include={"text/plain"}) == {"text/plain": repr(GRAMMAR)}
        assert set(GRAMMAR._repr_mimebundle_(exclude=["image/svg+xml"])) == {"text/plain", "text/vnd.mermaid"}

    def test_of_very_much_a_notebook_shows_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        monkeypatch.setattr(Picture, "to_svg", lambda picture, **_: asked.append(len(picture.nodes)) or "<svg/>")
        assert Pipeline(*(f"n{n}" for n in range(150)))._repr_mimebundle_()["image/svg+xml"] == "<svg/>"
        tangle = PDA(
            [(a, "x", None, b, ()) for a in "pqrstuvwxyzkl" for b in "pqrstuvwxyzkl"], start="p", accepting=["q"]
        )
        assert len(tangle.picture.edges) == 170
        for large in (Pipeline(*(f"n{n}" for n in range(151))), Pipeline("x" * 70_000), tangle, Drawable()):
            assert set(large._repr_mimebundle_()) == {"text/plain"}
        assert asked == [150]

    def test_notebooks_ask_for_it(self) -> None:
        """What IPython makes of a value that is the last of a cell."""
        formatters = pytest.importorskip("IPython.core.formatters")
        shown, _ = formatters.DisplayFormatter().format(GRAMMAR)
        assert shown["text/plain"] == repr(GRAMMAR)
        assert shown["text/vnd.mermaid"] == GRAMMAR.to_mermaid()


def test_networkx_is_imported_late() -> None:
    code = "import sys, formal_llm; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


some_texts = st.text("ab cd-\n\t漢…", max_size=40) | st.text(max_size=20)


class TestShorten:
    @given(some_texts, st.integers(2, 30))
    def test_is_the_beginning_on_one_line(self, text, width):
        short = shorten(text, width)
        assert len(short) <= width
        assert not set(short) & set("\n\r\t\x0b")
        if len(printable(text)) <= width:
            assert short == printable(text)
        else:
            assert short.endswith("…")
            assert printable(text).startswith(short[:-1])
            assert len(short) == width or printable(text)[len(short) - 1].isspace()


class TestWrap:
    @given(some_texts, st.integers(2, 20))
    def test_all_words_stay_and_fit_where_they_can(self, text, width):
        rows = wrap_text(text, width).split("\n")
        assert " ".join(rows).split() == " ".join(map(printable, text.splitlines())).split()
        for row in rows:
            assert len(row) <= width or " " not in row.strip(" ")

    def test_the_lines_that_a_text_has_are_kept(self):
        assert wrap_text("one two\n\nthree", 50) == "one two\n\nthree"
        assert wrap_text("one two\nthree four", 5) == "one\ntwo\nthree\nfour"
        assert wrap_text("well-known incomprehensibilities", 8) == "well-known\nincomprehensibilities"


class TestCut:
    @given(st.lists(st.text("ab", max_size=2), max_size=12), st.integers(0, 12))
    def test_says_how_many_are_left_out(self, lines, most):
        found = cut_lines(lines, most)
        if len(lines) <= most + 1:
            assert found == tuple(lines)
        else:
            assert found == (*lines[:most], f"… and {len(lines) - most} more")
            assert len(found) < len(lines)


class TestNumbered:
    @pytest.mark.parametrize(
        ("numbers", "text", "shown"),
        [
            ((), "go", "go"), ((1,), "go", "1: go"), ((1, 3), "go", "1, 3: go"), ((2, 2), "", "2"), ((), "", ""),
            (range(1, 6), "go", "1, 2, 3, 4, 5: go"), (range(1, 7), "go", "1, 2, 3, …, 6: go"),
        ],
    )  # fmt: skip
    def test_a_few_of_many_are_shown(self, numbers, text, shown):
        assert number_text(numbers, text) == shown
