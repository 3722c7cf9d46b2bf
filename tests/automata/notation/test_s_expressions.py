"""S-expressions: groups of names, each with its place."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm.automata.models.symbols import quote_text
from formal_llm.automata.notation.s_expressions import SAtom, SList, read_expressions
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError
from tests.automata.messages import from_caret
from tests.strategies import examples, texts

#: A name, bare or in quotes, or a list of such.
bare = st.from_regex(r"\A[a-z:*→-][a-z0-9_*→-]{0,4}\Z").map(lambda name: (name, False))
quoted = texts.filter(lambda text: not set(text) & set("\0\r")).map(lambda text: (text, True))
trees = st.lists(st.recursive(bare | quoted, lambda inner: st.lists(inner, max_size=4), max_leaves=8), max_size=3)
gaps = st.sampled_from([" ", "\n", "\t ", " ; a comment (\n", " # another )\n"])


def read(text):
    return read_expressions(SourceText(text, None, error=NotationError))


def stripped(expression):
    """An expression without its places."""
    if isinstance(expression, SList):
        return [stripped(item) for item in expression.items]
    return expression.text, expression.quoted


def words(expressions):
    for expression in expressions:
        if isinstance(expression, SList):
            yield from words(expression.items)
        else:
            yield expression


class TestReading:
    @given(trees, st.data())
    @examples(150)
    def test_what_was_written(self, tree, data):
        def write(item):
            if isinstance(item, list):
                return f"({data.draw(gaps).join(map(write, item))})"
            name, in_quotes = item
            return quote_text(name) if in_quotes else name

        text = data.draw(gaps).join(map(write, tree))
        source = SourceText(text, None)
        found = read_expressions(source)
        assert [stripped(one) for one in found] == tree
        rows = text.split("\n")
        for word in words(found):
            written = quote_text(word.text) if word.quoted else word.text
            assert rows[word.place.line - 1][word.place.column - 1 :].startswith(written)

    def test_head(self):
        (group, empty, quotes, nested) = read('(next a) () ("next" a) ((next) a)')
        assert group.head == SAtom("next", group.place._replace(column=2))
        assert (empty.head, quotes.head, nested.head) == (None, None, None)


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "problem", "caret"),
        [
            ("(a (b)", "this parenthesis is never closed", "(a (b)"),
            ("(a) (b (c", "this parenthesis is never closed", "(c"),
            ("(a))", "this parenthesis closes nothing", ")"),
            ('(a "b)', "does not end on its line", '"b)'),
            ('(a "b\n")', "does not end on its line", '"b'),
            ("(a \x01)", "unexpected character", "\x01)"),
        ],
    )
    def test_place(self, text, problem, caret):
        with pytest.raises(NotationError, match=problem) as caught:
            read(text)
        assert from_caret(caught.value) == caret

    def test_nested_too_deep(self):
        assert len(read("(" * 100 + ")" * 100)) == 1
        with pytest.raises(NotationError, match="parentheses more than 100 deep") as caught:
            read("(" * 101 + ")" * 101)
        assert caught.value.column == 101

    @given(st.text('()a" ;\\\n', max_size=12))
    @examples(150)
    def test_any_text_is_read_or_refused_at_a_place(self, text):
        try:
            read(text)
        except NotationError as error:
            assert from_caret(error) == error.source_line[error.column - 1 :]
        else:
            assume('"' not in text)
            uncommented = "".join(line.partition(";")[0] for line in text.split("\n"))
            assert uncommented.count("(") == uncommented.count(")")
