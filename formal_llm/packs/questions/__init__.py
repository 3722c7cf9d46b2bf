"""Questions for agents: published files, a small set of our own, and the scoring of answers."""

from formal_llm.packs.questions.benchmark import PublishedTable, published_tables
from formal_llm.packs.questions.loading import FORMATS, ContextArticles, QuizQuestion, read_questions, shipped_questions
from formal_llm.packs.questions.scoring import AnswerScore, mean_score, score_answer

__all__ = [
    "FORMATS", "AnswerScore", "ContextArticles", "PublishedTable", "QuizQuestion", "mean_score", "published_tables",
    "read_questions", "score_answer", "shipped_questions",
]  # fmt: skip
