import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.decoding.masks import list_mask_tokens, pack_mask


@given(st.sets(st.integers(0, 99)), st.integers(100, 170))
def test_tokens_are_packed_and_found_again(tokens, size):
    mask = pack_mask(tokens, size)
    assert list_mask_tokens(mask) == sorted(tokens)
    assert len(mask) == -(-size // 32)
    # The form that xgrammar and vLLM use: bit i % 32 of word i // 32.
    assert all((int(mask[token // 32]) >> token % 32) & 1 for token in tokens)


def test_a_token_that_is_none():
    with pytest.raises(IndexError):
        pack_mask([64], 33)
