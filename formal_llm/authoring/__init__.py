"""Rules from plain words: a reader of controlled English, and a model that drafts until the checker is content."""

from formal_llm.authoring.english import EnglishRules, read_english

__all__ = ["EnglishRules", "read_english"]
