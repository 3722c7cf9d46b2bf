"""Masks by xgrammar: contents and markers, against slow answers and against our own masks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.decoding.contents import FreeText, JsonSchema, OneOf, Regex, SegmentPattern
from formal_llm.agents.decoding.masks import list_mask_tokens, pack_mask
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.agents.decoding.xgrammar_masks import MarkerDetector, XGrammarMasks, can_overlap
from formal_llm.errors import AutomatonError, LLMError
from tests.agents.decoding.spelling import END, SPECIAL, vocabularies
from tests.strategies import examples

pytest.importorskip("xgrammar", reason="xgrammar is not installed: pip install 'formal-llm[xgrammar]'")

BYTES = TokenVocabulary(
    [b"", b"", *(bytes([byte]) for byte in range(256)), b"\nAct", b"Act:", b"\nAct:", b"t:\n", b"\nEnd:", b"d:"],
    [END],
    290,
)


def written(engine, what, text):
    """A matcher after a text, which is written byte by byte."""
    matcher = engine.compile(what)
    for byte in text:
        assert matcher.accept(2 + byte), text
    return matcher


def allowed(matcher, vocabulary=BYTES):
    return {vocabulary.pieces[token] if token != END else END for token in list_mask_tokens(matcher.mask())}


def lost(vocabulary):
    """The tokens that masks of xgrammar 0.2.8 leave out now and then: ``xxa`` where ``xa`` is a token, too."""
    pieces = vocabulary.pieces
    return {t for t, piece in enumerate(pieces) if len(piece) > 2 and piece[0] == piece[1] and piece[1:] in pieces}


def reads(text, markers):
    """(where the first marker ends, the marker), or None: by looking everywhere."""
    for end in range(1, len(text) + 1):
        found = [marker for marker in markers if text[:end].endswith(marker)]
        if found:
            return end, max(found, key=len)
    return None


class TestAgainstOurOwn:
    @given(vocabularies(), st.lists(st.integers(0, 99), max_size=8), st.integers(0, 8))
    @examples(20)
    def test_ways_back(self, vocabulary, choices, back):
        matcher = XGrammarMasks(vocabulary).compile(SegmentPattern(Regex("(x|yx)*,?"), may_end=True))
        seen = [matcher.mask().tobytes()]
        for choice in choices:
            tokens = list_mask_tokens(matcher.mask())
            matcher.accept(tokens[choice % len(tokens)])
            seen.append(matcher.mask().tobytes())
            if matcher.stopped:
                break
        back = min(back, len(seen) - 1)
        twin = matcher.fork()
        matcher.rollback(back)
        assert matcher.mask().tobytes() == seen[len(seen) - 1 - back]
        assert twin.mask().tobytes() == seen[-1]
        twin.reset()
        assert twin.mask().tobytes() == seen[0]
        with pytest.raises(ValueError, match="taken back"):
            twin.rollback(1)


class TestMarkers:
    @given(
        st.lists(st.text("xy,", min_size=1, max_size=3), min_size=1, max_size=4, unique=True),
        st.integers(0, 4),
        st.booleans(),
        vocabularies(),
        st.lists(st.integers(0, 99), max_size=10),
        st.sampled_from([FreeText(), Regex("[xy, ]*")]),
    )
    @examples(60)
    def test_text_without_markers(self, markers, legal, may_end, vocabulary, choices, content):
        markers = [one for one in markers if not any(one in other and not other.endswith(one) for other in markers)]
        follow, never = markers[:legal], markers[legal:]
        may_end = may_end or not follow
        matcher = XGrammarMasks(vocabulary).compile(SegmentPattern(content, tuple(follow), may_end, tuple(never)))
        all_markers = [marker.encode() for marker in markers]
        text = b""
        for choice in choices:
            expected = {END} if may_end else set()
            for token, piece in enumerate(vocabulary.pieces):
                if piece and (piece != b"z" or isinstance(content, FreeText)):
                    found = reads(text + piece, all_markers)
                    if found is None or (found[0] == len(text + piece) and found[1].decode() in follow):
                        expected.add(token)
            if not expected:  # each letter would be a marker that may not follow
                with pytest.raises(LLMError, match="nothing can be written"):
                    matcher.mask()
                return
            assert set(list_mask_tokens(matcher.mask())) == expected
            for token in range(vocabulary.size):
                if token not in expected:
                    assert not matcher.accept(token)
            token = sorted(expected)[choice % len(expected)]
            assert matcher.accept(token)
            if token == END:
                return
            text += vocabulary.pieces[token]
            if reads(text, all_markers):
                assert matcher.may_stop()
                return

    def test_one_marker_is_forced_where_the_content_can_only_end(self):
        engine = XGrammarMasks(BYTES)
        matcher = written(engine, SegmentPattern(OneOf("yes", "no"), ("\nAct:",), never=("\nEnd:",)), b"yes")
        assert allowed(matcher) == {b"\n", b"\nAct", b"\nAct:"}
        both = written(engine, SegmentPattern(OneOf("yes", "no"), ("\nAct:", "\nEnd:")), b"no")
        assert allowed(both) == {b"\n", b"\nAct", b"\nAct:", b"\nEnd:"}
        assert not both.may_stop()
        assert both.accept(2 + 256 + 4)
        assert both.may_stop()

    def test_a_budget_of_tokens(self):
        matcher = written(XGrammarMasks(BYTES), SegmentPattern(FreeText(max_tokens=3), ("\nAct:",)), b"abc")
        assert allowed(matcher) == {b"\n", b"\nAct", b"\nAct:"}

    def test_special_tokens_are_no_text(self):
        matcher = XGrammarMasks(BYTES).compile(SegmentPattern(may_end=True))
        tokens = list_mask_tokens(matcher.mask())
        assert END in tokens
        assert SPECIAL not in tokens
        assert max(tokens) < len(BYTES.pieces)

    @pytest.mark.parametrize(
        ("markers", "found"),
        [
            (["\nAct:", "\nEnd:"], False),
            (["Final Answer:", "Answer:"], True),
            (["aba"], True),
            (["ab", "bc"], True),
            (["[A]", "[B]"], False),
        ],
    )
    def test_overlap(self, markers, found):
        assert can_overlap(markers) is found


class TestContents:
    def test_a_regular_expression(self):
        engine = XGrammarMasks(BYTES)
        assert allowed(written(engine, SegmentPattern(Regex(r"[0-9]{2}-[ab]"), may_end=True), b"12-")) == {b"a", b"b"}
        with pytest.raises(AutomatonError, match="cannot read"):
            engine.compile(SegmentPattern(Regex("(("), may_end=True))

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"n": {"enum": ["a Act: b", "x"]}}, "required": ["n"]}
        text = b'{"n": "x"}'
        assert json.loads(text)
        engine = XGrammarMasks(BYTES)
        what = SegmentPattern(JsonSchema.from_schema(schema), ("Act:",))
        assert allowed(written(engine, what, text)) >= {b"A", b"Act:"}
        assert allowed(written(engine, what, b'{"n": "')) == {b"x"}  # the other one holds a marker

    @pytest.mark.parametrize("more", [{}, {"pattern": "^[a-zA: ]*$"}])
    def test_no_marker_in_a_text_of_json(self, more):
        schema = {"type": "object", "properties": {"n": {"type": "string", **more}}, "required": ["n"]}
        what = SegmentPattern(JsonSchema.from_schema(schema), ("Act:",), never=("End:",))
        matcher = written(XGrammarMasks(BYTES), what, b'{"n": "xAct')
        assert b"t" in allowed(matcher)
        assert b":" not in allowed(matcher)
        assert not matcher.accept(2 + ord(":"))

    def test_a_content_that_wants_a_marker(self):
        matcher = written(
            XGrammarMasks(BYTES), SegmentPattern(OneOf("x\nAct:y"), ("\nEnd:",), never=("\nAct:",)), b"x\nAct"
        )
        with pytest.raises(LLMError, match="nothing can be written"):
            matcher.mask()


markers = st.lists(st.text("xy", min_size=1, max_size=3), min_size=1, max_size=3, unique=True).filter(
    lambda found: not any(one in other and not other.endswith(one) for one in found for other in found)
)


@given(markers, st.text("xy,", max_size=6), vocabularies())
def test_doubtful_tokens_are_those_by_which_a_marker_comes_up(found, text, vocabulary):
    watch = MarkerDetector(vocabulary, SegmentPattern(FreeText(), tuple(found)))
    written = text.encode()
    everything = pack_mask(range(len(vocabulary.pieces)), vocabulary.size)
    doubtful = set(watch.find_doubtful_tokens(written, everything))
    for token, piece in enumerate(vocabulary.pieces):
        # Those markers only that end inside the token: what stands before it was looked at before.
        ends = [
            len(written + piece[:size])
            for size in range(1, len(piece) + 1)
            if any((written + piece[:size]).endswith(marker.encode()) for marker in found)
        ]
        assert (watch.check_completed_marker(written, token) is not None) == bool(ends) == (token in doubtful)
    assert not set(watch.find_doubtful_tokens(written, pack_mask([], vocabulary.size)))


def test_the_first_marker_counts_and_of_two_the_longest():
    vocabulary = TokenVocabulary([b"", b"Answer:", b":", b": x"], [0])
    watch = MarkerDetector(vocabulary, SegmentPattern(FreeText(), ("Answer:",), never=("Final Answer:",)))
    assert watch.check_completed_marker(b"The ", 1) is True
    assert watch.check_completed_marker(b"The Final ", 1) is False
    assert watch.check_completed_marker(b"Answer", 2) is True
    assert watch.check_completed_marker(b"Answer", 3) is False
    assert watch.check_completed_marker(b"Answers", 2) is None
