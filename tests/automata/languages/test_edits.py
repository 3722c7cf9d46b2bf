import pytest
from hypothesis import given

from formal_llm.automata.languages.edits import Edit, EditWeights, apply_edits, find_edits, weigh_edits
from tests.automata.languages.editing import distance, weights, words


class TestEdits:
    @given(words, words, weights)
    def test_they_turn_one_word_into_the_other_for_the_least(self, word, other, weights):
        made = find_edits(word, other, weights)
        assert apply_edits(made, word) == other
        assert weigh_edits(made, weights) == distance(word, other, weights)
        assert [edit.position for edit in made] == sorted(edit.position for edit in made)

    def test_what_they_say(self):
        made = find_edits(("a", "b", "c"), ("b", "x", "d"))
        assert weigh_edits(made) == 3
        assert str(Edit("insert", 2, new="x")) == "insert x at place 3"
        assert str(Edit("delete", 2, "x")) == "delete x at place 3"
        assert str(Edit("substitute", 2, "x", "y")) == "replace x at place 3 by y"

    @pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
    def test_weights_are_numbers_from_zero(self, weight):
        with pytest.raises(ValueError, match="the weight of delete"):
            EditWeights(delete=weight)
