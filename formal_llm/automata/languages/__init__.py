"""Questions about whole languages: their words, differences, nearest words, and why one is empty."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily

if TYPE_CHECKING:
    from formal_llm.automata.languages.comparison import Differences, differences
    from formal_llm.automata.languages.emptiness import WhyEmpty, why_empty
    from formal_llm.automata.languages.grammar_warnings import cfg_warnings
    from formal_llm.automata.languages.nearest_words import Edit, EditWeights, Nearest, nearest
    from formal_llm.automata.languages.word_lists import words

#: For each name the module that defines it.
_HOMES = {
    "Differences": "comparison",
    "Edit": "nearest_words",
    "EditWeights": "nearest_words",
    "Nearest": "nearest_words",
    "WhyEmpty": "emptiness",
    "cfg_warnings": "grammar_warnings",
    "differences": "comparison",
    "nearest": "nearest_words",
    "why_empty": "emptiness",
    "words": "word_lists",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "Differences", "Edit", "EditWeights", "Nearest", "WhyEmpty", "cfg_warnings", "differences", "nearest",
    "why_empty", "words",
]  # fmt: skip
