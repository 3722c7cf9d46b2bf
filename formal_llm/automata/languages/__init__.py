"""Questions about whole languages: their words, differences, nearest words, why one is empty."""

from formal_llm.automata.languages.cfg_warnings import cfg_warnings
from formal_llm.automata.languages.derivations import Derivations, ambiguity_witness, derivations
from formal_llm.automata.languages.differences import Differences, differences
from formal_llm.automata.languages.edits import Edit, EditWeights
from formal_llm.automata.languages.lengths import is_finite, longest_length, shortest_length
from formal_llm.automata.languages.nearest import Nearest, nearest
from formal_llm.automata.languages.why_empty import WhyEmpty, why_empty
from formal_llm.automata.languages.words import words

__all__ = [
    "Derivations", "Differences", "Edit", "EditWeights", "Nearest", "WhyEmpty", "ambiguity_witness", "cfg_warnings",
    "derivations", "differences", "is_finite", "longest_length", "nearest", "shortest_length", "why_empty",
    "words",
]  # fmt: skip
