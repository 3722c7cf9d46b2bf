"""Rules from plain words: a reader of controlled English, and a model that drafts until the checker is satisfied."""

from formal_llm.authoring.author import Authored, Enough, aauthor, author
from formal_llm.authoring.drafts import Draft
from formal_llm.authoring.english import EnglishRules, read_english
from formal_llm.authoring.examples import Example, load_plan_examples, read_plan_examples, write_examples
from formal_llm.authoring.questions import Shown

__all__ = [
    "Authored", "Draft", "EnglishRules", "Enough", "Example", "Shown", "aauthor", "author", "load_plan_examples",
    "read_english", "read_plan_examples", "write_examples",
]  # fmt: skip
