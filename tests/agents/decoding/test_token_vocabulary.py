import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.errors import ModelError
from tests import tiny_models

TEXTS = ["Image Denoising; the", "Wäsche 漢 \U0001f600\n\t", " two  blanks", "<0x41>", "▁"]
pieces = st.lists(st.binary(max_size=3), max_size=30)


class TestTokenizers:
    def test_byte_level(self):
        tokenizer = tiny_models.tokenizer(chat=True)
        vocabulary = TokenVocabulary.from_tokenizer(tokenizer, 1_000)
        for text in TEXTS:
            assert vocabulary.decode_tokens(tokenizer.encode(text, add_special_tokens=False)) == text.encode()
        assert vocabulary.size == 1_000
        assert vocabulary.stops == (tokenizer.eos_token_id,)
        assert not any(vocabulary.pieces[number] for number in tokenizer.all_special_ids)

    @pytest.mark.parametrize("unigram", [False, True])
    def test_sentence_pieces(self, unigram):
        tokenizer = tiny_models.sentence_pieces(unigram=unigram)
        vocabulary = TokenVocabulary.from_tokenizer(tokenizer)
        for text in ("Image Denoising; the", "two  blanks\n"):
            # A text begins with a blank there.
            assert vocabulary.decode_tokens(tokenizer.encode(text, add_special_tokens=False)) == b" " + text.encode()

    def test_pieces_that_are_bytes(self):
        from tokenizers import AddedToken, Tokenizer, decoders, models
        from transformers import PreTrainedTokenizerFast

        names = ["</s>", "▁", "a", "▁a", *(f"<0x{byte:02X}>" for byte in range(256))]
        made = Tokenizer(
            models.BPE({name: number for number, name in enumerate(names)}, [("▁", "a")], byte_fallback=True)
        )
        made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        made.add_tokens([AddedToken("<tool>", special=False)])
        ready = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>")
        vocabulary = TokenVocabulary.from_tokenizer(ready, stops=[1])
        assert vocabulary.pieces[2:4] == (b"a", b" a")
        assert vocabulary.pieces[4 + 0xE4] == b"\xe4"
        assert vocabulary.pieces[-1] == b"<tool>"  # it is no special token: it is text
        assert vocabulary.stops == (0, 1)
        assert vocabulary.pieces[:2] == (b"", b"")

    def test_tokens_that_stand_for_nothing_known(self):
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast

        words = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
        with pytest.raises(ModelError, match="cannot be determined"):
            TokenVocabulary.from_tokenizer(words)


class TestTokens:
    @given(pieces, st.binary(max_size=3))
    def test_tokens_by_how_they_begin(self, found, beginning):
        vocabulary = TokenVocabulary([b"", *found], [0])
        expected = [n for n, piece in enumerate([b"", *found]) if piece and piece.startswith(beginning)]
        assert sorted(vocabulary.find_tokens_beginning(beginning)) == expected

    def test_sizes_that_cannot_be(self):
        with pytest.raises(ValueError, match="the tokenizer has 2 tokens"):
            TokenVocabulary([b"a", b"b"], [], 1)
        with pytest.raises(ValueError, match="none of the 1 tokens"):
            TokenVocabulary([b"a"], [1])
