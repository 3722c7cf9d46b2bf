"""Values behave as values: they are pickled, copied, compared and hashed by what they are, not by what was done."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import fields, is_dataclass
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Behaviour, Flowchart, Lookahead
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.product import product
from formal_llm.errors import GrammarError
from tests.automata.charts import flowcharts
from tests.automata.values import GRAMMAR, VALUES, use
from tests.oracles import all_words
from tests.strategies import examples, limited_automata, limited_grammars, written_grammars

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def pickled(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("name", VALUES)
class TestEachKind:
    def test_equal_ones_are_equal_and_have_equal_hashes(self, name):
        one, other = VALUES[name](), VALUES[name]()
        assert one == other
        assert hash(one) == hash(other)
        assert {one: name}[other] == name

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_pickles(self, name, protocol):
        value = VALUES[name]()
        again = pickled(value, protocol)
        assert again == value
        assert hash(again) == hash(value)
        assert type(again) is type(value)
        assert repr(again) == repr(value)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_copies(self, name, copied):
        value = VALUES[name]()
        use(value)
        assert copied(value) == value
        assert hash(copied(value)) == hash(value)
        assert use(copied(value)) == use(value)

    def test_what_was_worked_out_is_not_pickled(self, name):
        value = VALUES[name]()
        fresh = pickle.dumps(value)
        use(value)
        assert len(pickle.dumps(value)) == len(fresh)
        assert use(pickled(value)) == use(value)

    def test_does_not_change(self, name):
        value = VALUES[name]()
        for field in fields(value) if is_dataclass(value) else ():
            with pytest.raises(AttributeError):
                setattr(value, field.name, None)
        assert value == VALUES[name]()


def test_different_values_differ():
    for one, other in combinations([make() for make in VALUES.values()], 2):
        assert one != other


def test_pickles_are_read_in_another_process(tmp_path):
    """Where texts have other hashes: what was worked out here must not be believed there."""
    values = {name: make() for name, make in VALUES.items()}
    for value in values.values():
        use(value)
    path = tmp_path / "values.pickle"
    path.write_bytes(pickle.dumps(values))
    code = (
        "import pickle, sys; from tests.automata.values import VALUES, use\n"
        "found = pickle.load(open(sys.argv[1], 'rb'))\n"
        "wrong = [n for n, make in VALUES.items() if found[n] != make() or hash(found[n]) != hash(make())]\n"
        "assert not wrong, wrong\n"
        "assert [n for n in VALUES if use(found[n]) != use(VALUES[n]())] == []\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7" if os.environ.get("PYTHONHASHSEED") != "7" else "8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


class TestWorksAfterPickling:
    @given(written_grammars() | limited_grammars())
    @examples(80)
    def test_grammars(self, cfg):
        cfg.accepts(())
        again = pickled(cfg)
        assert again == cfg
        assert hash(again) == hash(cfg)
        assert str(again) == str(cfg)
        assert again.picture == cfg.picture
        for word in all_words([*cfg.terminals][:2], 3):
            assert again.accepts(word) == cfg.accepts(word)

    def test_the_automaton_of_a_grammar_knows_that_it_is_one(self):
        pda = PDA.from_cfg(CFG.from_string(GRAMMAR))
        again = pickled(pda)
        assert again.is_of_cfg
        assert pickled(PDA.from_cfg(pickled(pda.cfg))).is_of_cfg
        assert PDA.from_cfg(again.cfg).is_of_cfg
        # The grammar of a product is not asked for its words.
        loop = PDA([("x", "a", None, "x")], start="x", accepting="x")
        both = pickled(product(pda, loop))
        assert not both.is_of_cfg
        assert both.factors == (pda, loop)

    @given(limited_automata())
    @examples(80)
    def test_automata(self, source):
        pda, bounds = source
        again, kept = pickled((pda, bounds))
        assert (again, kept) == source
        assert hash(again) == hash(pda)
        assert again.fingerprint == pda.fingerprint
        assert again.picture == pda.picture
        for word in all_words([*pda.terminals][:2], 3):
            assert again.accepts(word) == pda.accepts(word)
        assert Lookahead(again, kept).shortest_word() == Lookahead(pda, bounds).shortest_word()

    def test_several_in_one_pickle_stay_one_object(self):
        cfg = CFG.from_string(GRAMMAR)
        pda, again = pickled((PDA.from_cfg(cfg), cfg))
        assert pda.cfg is again


class TestEquality:
    @given(written_grammars(), written_grammars())
    @examples(80)
    def test_grammars_are_equal_when_they_are_written_alike(self, one, other):
        assert (one == other) == (str(one) == str(other))

    @given(flowcharts(), flowcharts())
    def test_flowcharts_are_equal_when_they_are_written_alike(self, one, other):
        assert (one == other) == (str(one) == str(other))
        assert one == Flowchart(one.nodes, one.edges, one.direction, one.title)

    def test_all_that_planning_reads_of_an_automaton_counts(self):
        arguments = {"start": "p", "accepting": ["q"]}
        plain = PDA([("p", "a", None, "q")], **arguments)
        others = [
            PDA([("p", "a", None, "q", (), "text")], **arguments),
            PDA([("p", "a", None, "q")], **arguments, name="n"),
            PDA([("p", "a", None, "q")], **arguments, stack=("Z",)),
            PDA([("p", "a", None, "q")], **arguments, symbols={"a": VALUES["a symbol"]()}),
            PDA([("p", "a", None, "q")], **arguments, limits=VALUES["limits"]()),
            PDA([("p", "a", None, "q")], **arguments, factors=(plain,)),
            PDA([("p", "a", None, "q")], **arguments, classes=["T"]),
        ]
        for one, other in combinations([plain, *others], 2):
            assert one != other
        assert plain != "plain"


#: One of each kind, as it is printed.
PRINTED = {
    CFG: "%start S\n%limit 1\n\nS -> a S | ε\n\na \"the a\" cost=2\n",
    PDA: "%start p\n%accept q\n\np, a, ε -> q, ε \"go\"\n",
    Flowchart: 'flowchart TB\n    A["Do it"]\n    B(["End"])\n    A --> B\n',
    Behaviour: '(define b\n  (:states\n    (a (:text "[A]"))\n    (c))\n  (:behavior\n    (until a c)))\n',
}  # fmt: skip


class TestKinds:
    @pytest.mark.parametrize("kind", PRINTED)
    def test_there_and_back(self, kind, tmp_path):
        value = kind.from_string(PRINTED[kind])
        assert type(value) is kind
        assert str(value) == PRINTED[kind]
        path = tmp_path / "rules"
        path.write_text(str(value), encoding="utf-8")
        assert kind.from_file(path) == value


class TestFiles:
    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(GrammarError, match="no such file") as caught:
            CFG.from_file(tmp_path / "missing.cfg")
        assert caught.value.file == str(tmp_path / "missing.cfg")
        with pytest.raises(GrammarError, match="cannot be read") as caught:
            CFG.from_file(tmp_path)
        assert caught.value.file == str(tmp_path)

    @pytest.mark.parametrize("data", [b"\x80\x81", b"a\xff", "a".encode("utf-16"), "a".encode("utf-32"), b"\x7fE\0\1"])
    def test_files_that_are_not_text(self, tmp_path, data):
        path = tmp_path / "odd.cfg"
        path.write_bytes(data)
        with pytest.raises(GrammarError, match="not a text file") as caught:
            CFG.from_file(path)
        assert caught.value.file == str(path)


class TestFrozenDict:
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
