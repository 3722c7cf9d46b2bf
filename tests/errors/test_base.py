"""The root of the tree of exceptions, and how messages suggest what was meant."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import errors
from formal_llm.errors import FormalLLMError, ResourceNotFound, did_you_mean, unknown

CLASSES = [getattr(errors, name) for name in errors.__all__ if inspect.isclass(getattr(errors, name))]


def test_the_drawn_tree_is_the_tree() -> None:
    """The docstring of ``formal_llm.errors`` draws each class below its base, with the built-in one that it also is."""
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+)(?: \((\w+)\))?", errors.__doc__ or "", re.MULTILINE)
    path: list[str] = []
    seen = set()
    for lines, name, builtin in drawn:
        depth = len(lines) // 4
        path[depth:] = [name]
        kind = getattr(errors, name)
        seen.add(kind)
        for base, derived in pairwise(path):
            assert issubclass(getattr(errors, derived), getattr(errors, base))
        if builtin:
            assert issubclass(
                kind, __builtins__[builtin] if isinstance(__builtins__, dict) else getattr(__builtins__, builtin)
            )
        assert len(path) == 1 or kind.__bases__[0] is getattr(errors, path[-2])
    assert seen == {kind for kind in CLASSES if issubclass(kind, FormalLLMError)}


@given(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=5))
def test_a_suggestion_is_a_known_name(name: str, known: list[str]) -> None:
    assert did_you_mean(name, known) in {*known, None}
    assert did_you_mean(name.upper(), [*known, name]) is not None or name.upper().casefold() != name.casefold()


def test_suggestions() -> None:
    assert did_you_mean("denoisin", ["deblurring", "denoising"]) == "denoising"
    assert did_you_mean("Denoising", ["denoising"]) == "denoising"
    assert did_you_mean("zebra", ["denoising"]) is None
    assert unknown("terminal", "wahs", ["wash", "dry"]) == "unknown terminal: wahs (did you mean wash?)"
    assert unknown("terminal", "zebra", ["wash"]) == "unknown terminal: zebra"


def test_what_is_not_found_names_what_there_is() -> None:
    error = ResourceNotFound("grammar", "openagy", ["cooking", "openagi"])
    assert str(error) == "no grammar 'openagy'. Did you mean 'openagi'? There are: cooking, openagi."
    assert (error.name, error.known) == ("openagy", ("cooking", "openagi"))
    with pytest.raises(LookupError):
        raise error


def test_errors_travel() -> None:
    error = ResourceNotFound("grammar", "x", ["y"])
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(other) is ResourceNotFound
        assert (str(other), other.name, other.known) == (str(error), "x", ("y",))
