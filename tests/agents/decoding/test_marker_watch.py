from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.decoding.contents import FreeText, SegmentPattern
from formal_llm.agents.decoding.marker_watch import MarkerDetector
from formal_llm.agents.decoding.masks import pack_mask
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from tests.agents.decoding.spelling import vocabularies

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
