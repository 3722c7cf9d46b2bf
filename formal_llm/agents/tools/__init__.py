"""What agents act with: a calculator, and search and lookup over a corpus on this machine."""

from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.calculator import Calculation, calculate
from formal_llm.agents.tools.corpus import Corpus, CorpusSession
from formal_llm.agents.tools.corpus_file import build_corpus
from formal_llm.agents.tools.toolkit import agent_toolkit

__all__ = ["Article", "Calculation", "Corpus", "CorpusSession", "agent_toolkit", "build_corpus", "calculate"]
