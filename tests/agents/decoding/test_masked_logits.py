"""The logits processor: rows by what they begin with, beams, padding, what is taken back."""

import math

import pytest
import torch

from formal_llm import CFG
from formal_llm.agents.decoding.masked_logits import MaskedLogits
from formal_llm.agents.decoding.masks import Mask, pack_mask
from formal_llm.agents.monitor import Monitor
from formal_llm.errors import LLMError
from tests import tiny_models

END, A, B, C, PAD = 0, 1, 2, 3, 4
NAMES = {A: "a", B: "b", C: "c"}
#: One a and one b at most, and c at the end.
RULES = CFG.from_string("S -> a S | b S | c\n%limit 1")


class RulesMatcher:
    """A token for each terminal, as a monitor over the rules allows them."""

    def __init__(self, begin: Monitor) -> None:
        self.way = [begin]
        self.stopped = False

    def mask(self) -> Mask:
        allowed = [token for token, name in NAMES.items() if name in self.way[-1].allowed()] + [END] * self.may_stop()
        return pack_mask([END] if self.stopped else allowed, 4)

    def accept(self, token: int) -> bool:
        if self.stopped or token not in NAMES or not self.way[-1].allows(NAMES[token]):
            if token != END or not self.may_stop() or self.stopped:
                return False
            self.stopped = True
            self.way.append(self.way[-1])
            return True
        self.way.append(self.way[-1].after(NAMES[token]))
        return True

    def rollback(self, count: int) -> None:
        if count:
            self.stopped = False
            del self.way[-count:]

    def fork(self) -> "RulesMatcher":
        other = RulesMatcher(self.way[0])
        other.way, other.stopped = list(self.way), self.stopped
        return other

    def reset(self) -> None:
        self.__init__(self.way[0])

    def may_stop(self) -> bool:
        return self.way[-1].may_stop()


def matcher(rules=RULES):
    return RulesMatcher(Monitor(rules))


def legal(processor, rows, width=7):
    """The tokens left for each row."""
    scores = processor(torch.tensor(rows), torch.zeros(len(rows), width))
    assert scores.shape == (len(rows), width)
    return [[token for token, score in enumerate(row) if score == 0] for row in scores.tolist()]


class TestRows:
    def test_a_text_token_by_token(self):
        processor = MaskedLogits(matcher())
        assert legal(processor, [[9, 9]]) == [[A, B, C]]
        assert legal(processor, [[9, 9, A]]) == [[B, C]]
        assert legal(processor, [[9, 9, A, C]]) == [[END]]
        assert legal(processor, [[9, 9, A, C, END]]) == [[END]]

    def test_a_finished_row_is_filled_up(self):
        processor = MaskedLogits(matcher())
        legal(processor, [[9], [9]])
        legal(processor, [[9, C], [9, A]])
        assert legal(processor, [[9, C, END], [9, A, B]]) == [[END], [C]]
        assert legal(processor, [[9, C, END, PAD], [9, A, B, C]]) == [[END], [END]]

    def test_another_text_begins_anew(self):
        processor = MaskedLogits(matcher())
        legal(processor, [[9]])
        assert legal(processor, [[9, A]]) == [[B, C]]
        assert legal(processor, [[8, 8, 8]]) == [[A, B, C]]
        processor.reset()
        assert legal(processor, [[8, 8, 8, A]]) == [[A, B, C]]

    def test_each_text_may_have_a_matcher_of_its_own(self):
        one, other = matcher(), matcher(CFG.from_string("S -> b S | c"))
        processor = MaskedLogits([one, other])
        assert legal(processor, [[9], [9]]) == [[A, B, C], [B, C]]
        assert legal(processor, [[9, B], [9, B]]) == [[A, C], [B, C]]
        assert not one.may_stop()  # they stay where they are
        with pytest.raises(LLMError, match="3 rows are generated, with 2 matchers and 1 beams each"):
            legal(MaskedLogits([one, other]), [[9], [9], [9]])

    def test_tokens_that_are_taken_back(self):
        """Assisted generation drafts, and goes back to where the draft was wrong."""
        processor = MaskedLogits(matcher())
        legal(processor, [[9]])
        for drafted in ([9, A], [9, A, B], [9, A, B, C]):
            legal(processor, [drafted])
        assert legal(processor, [[9, A, C]]) == [[END]]
        assert legal(processor, [[9, B]]) == [[A, C]]
        assert legal(processor, [[9, B, A, C]]) == [[END]]

    def test_a_token_that_the_mask_forbids(self):
        processor = MaskedLogits(matcher())
        legal(processor, [[9]])
        with pytest.raises(LLMError, match="token 0 was written, which the mask forbids"):
            legal(processor, [[9, END]])

    def test_a_model_with_fewer_tokens(self):
        with pytest.raises(LLMError, match="the model has 2 tokens"):
            legal(MaskedLogits(matcher()), [[9]], width=2)


class TestBeams:
    def test_rows_in_another_order(self):
        processor = MaskedLogits(matcher(), beams=2)
        legal(processor, [[9], [9]])
        assert legal(processor, [[9, A], [9, B]]) == [[B, C], [A, C]]
        assert legal(processor, [[9, B, A], [9, B, C]]) == [[C], [END]]  # both from the second
        assert legal(processor, [[9, B, A, C], [9, B, A, B]]) == [[END], []]  # only one is legal
        assert legal(processor, [[9, B, A, C, END], [9, B, A, B, C]]) == [[END], []]

    @pytest.mark.parametrize("beams", [1, 4])
    def test_beam_search_finds_the_most_probable_text(self, beams):
        """With as many beams as there are texts, it is the best of all of them by their log-probabilities."""
        model, tokens = tiny_models.causal("llama", 7), 5
        texts = [[C], [A, C], [B, C], [A, B, C], [B, A, C]]
        processor = MaskedLogits(matcher(), beams=beams)
        prompt = torch.tensor([[5, 6]])
        written = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            logits_processor=[processor],
            eos_token_id=END,
            pad_token_id=PAD,
            bos_token_id=None,
            do_sample=False,
            num_beams=beams,
            max_new_tokens=tokens,
            length_penalty=0.0,
            early_stopping=False,
        )
        found = [token for token in written[0, 2:].tolist() if token != PAD]
        assert found[-1] == END
        assert found[:-1] in texts
        if beams == 4:
            scores = [log_probability(model, prompt, [*text, END]) for text in texts]
            assert math.isclose(log_probability(model, prompt, found), max(scores), abs_tol=1e-4)

    def test_a_batch_of_prompts(self):
        model = tiny_models.causal("gpt2", 7)
        prompts = torch.tensor([[5, 6], [6, 5], [5, 5]])
        written = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            logits_processor=[MaskedLogits(matcher())],
            eos_token_id=END,
            pad_token_id=PAD,
            do_sample=True,
            max_new_tokens=5,
        )
        for row in written[:, 2:].tolist():
            text = [token for token in row if token != PAD]
            assert text in ([C, END], [A, C, END], [B, C, END], [A, B, C, END], [B, A, C, END])


def log_probability(model, prompt, tokens):
    with torch.no_grad():
        logits = model(torch.cat([prompt, torch.tensor([tokens])], 1)).logits[0, prompt.shape[1] - 1 : -1]
    return float(torch.log_softmax(logits, -1)[range(len(tokens)), tokens].sum())
