"""Templates: texts with places that are filled in, ``{name}``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

_PROMPT = dict.fromkeys(("task", "progress", "target", "options", "instruction"), "")
_DRAFT = dict.fromkeys(("task", "progress", "names", "rules", "limits", "instruction"), "")
#: The templates of a wording, each with what it may use.
FIELDS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("prompt", _PROMPT), ("follow_up", _PROMPT), ("system", {"task": "", "rules": ""}),
    ("instruction", {"count": 1}), ("instruction_several", {"count": 1}),
    ("selection_sets", {"sets": ""}), ("selection_not", {"sets": ""}), ("selection_with", {"options": ""}),
    ("selection_sum", {"amount": "", "quantity": ""}), ("selection_sum_later", {"amount": "", "quantity": ""}),
    ("target", {"label": "", "tool": "", "ordinal": ""}), ("first_target", {"label": ""}),
    ("next_target", {"label": ""}), ("tool_option", {"label": ""}), ("another_option", {"label": ""}),
    ("enough_option", {"label": ""}), ("none_option", {"label": ""}), ("step", {"text": ""}),
    ("question_target", {"question": ""}), ("decision", {"question": "", "answer": ""}), ("draft", _DRAFT),
    ("more_option", {"count": 1}), ("group_option", {"group": "", "count": 1}), ("page_taken", {"options": ""}),
    ("page_wanted", {"count": 1}), ("draft_call", {}), ("draft_steps", {}), ("draft_wanted", {"step": ""}),
)  # fmt: skip
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def fill_template(template: str, values: Mapping[str, object]) -> str:
    """``template`` with each ``{name}`` replaced.

    Raises:
        ValueError: a name that is not in ``values``; the message lists those that are.
    """
    form, names = _compile_template(template)
    try:
        return form % tuple([values[name] for name in names])
    except KeyError as name:
        known = ", ".join(f"{{{one}}}" for one in values)
        raise ValueError(f"unknown placeholder {{{name.args[0]}}}; there are: {known}") from None


@lru_cache(maxsize=256)
def _compile_template(template: str) -> tuple[str, tuple[str, ...]]:
    """A template as Python's ``%`` takes it, and the names of its placeholders in order."""
    pieces = _PLACEHOLDER.split(template)
    return "%s".join(text.replace("%", "%%") for text in pieces[::2]), tuple(pieces[1::2])


def find_duplicates(texts: Iterable[str]) -> set[str]:
    """The texts that stand there more than once."""
    return {text for text, count in Counter(texts).items() if count > 1}
