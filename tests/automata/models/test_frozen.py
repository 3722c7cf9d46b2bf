"""Mappings that do not change, and values that are pickled by their fields."""

import copy
import pickle
from dataclasses import dataclass
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.frozen import FrozenDict, PickledByFields

plain = st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=5)


class TestFrozenDict:
    @given(plain)
    def test_is_read_like_a_dictionary(self, items):
        frozen = FrozenDict(items)
        assert frozen == items
        assert isinstance(frozen, dict)
        assert [*frozen.items()] == [*items.items()]
        assert all(frozen[key] == frozen.get(key) == value for key, value in items.items())
        assert frozen.get("no such key", 7) == 7
        assert (frozen | {"more": 1}, frozen) == (items | {"more": 1}, items)
        assert repr(frozen) == repr(items)

    @pytest.mark.parametrize(
        "change",
        [
            lambda frozen: frozen.__setitem__("a", 2), lambda frozen: frozen.__delitem__("a"),
            lambda frozen: frozen.clear(), lambda frozen: frozen.pop("a"), lambda frozen: frozen.popitem(),
            lambda frozen: frozen.setdefault("b", 1), lambda frozen: frozen.update(b=1),
            lambda frozen: frozen.__ior__({"b": 1}),
        ],
    )  # fmt: skip
    def test_refuses_every_change(self, change):
        frozen = FrozenDict({"a": 1})
        with pytest.raises(TypeError, match="does not change"):
            change(frozen)
        assert frozen == {"a": 1}

    def test_no_attributes_are_added(self):
        with pytest.raises(AttributeError):
            FrozenDict().more = 1

    def test_does_not_follow_what_it_was_made_of(self):
        items = {"a": 1}
        frozen = FrozenDict(items)
        items["a"] = 2
        assert frozen == {"a": 1}

    @given(plain, st.randoms())
    def test_equal_ones_have_equal_hashes_whatever_the_order(self, items, random):
        shuffled = [*items.items()]
        random.shuffle(shuffled)
        assert FrozenDict(items) == FrozenDict(shuffled)
        assert hash(FrozenDict(items)) == hash(FrozenDict(shuffled))
        assert len({FrozenDict(items), FrozenDict(shuffled)}) == 1

    def test_other_items_other_hash(self):
        made = [FrozenDict({key: value}) for key in "abc" for value in range(20)]
        assert len({hash(one) for one in made}) > 50

    def test_has_a_hash_only_where_its_values_have_one(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(FrozenDict({"a": []}))

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_pickles(self, protocol):
        frozen = FrozenDict({"a": FrozenDict({"b": (1, 2)})})
        again = pickle.loads(pickle.dumps(frozen, protocol))
        assert again == frozen
        assert [type(again), type(again["a"])] == [FrozenDict, FrozenDict]
        assert hash(again) == hash(frozen)

    def test_copies(self):
        frozen = FrozenDict({"a": [1]})
        shallow, deep = copy.copy(frozen), copy.deepcopy(frozen)
        assert frozen == shallow == deep
        assert type(shallow) is type(deep) is FrozenDict
        assert shallow["a"] is frozen["a"]
        assert deep["a"] is not frozen["a"]


@dataclass(frozen=True)
class Word(PickledByFields):
    text: str
    shout: bool = False

    @cached_property
    def worked_out(self):
        return lambda: self.text.upper()  # what no pickle can hold


class TestByFields:
    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_what_was_worked_out_is_not_pickled(self, protocol):
        word = Word("a", shout=True)
        fresh = pickle.dumps(word, protocol)
        assert word.worked_out() == "A"
        assert pickle.dumps(word, protocol) == fresh
        again = pickle.loads(fresh)
        assert again == word
        assert vars(again) == {"text": "a", "shout": True}
        assert again.worked_out() == "A"

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_what_was_worked_out_is_not_copied(self, copied):
        word = Word("a")
        assert word.worked_out() == "A"
        assert vars(copied(word)) == {"text": "a", "shout": False}
