"""Rules from plain words: a model that drafts until the checker is satisfied, and examples until the author is."""

from formal_llm.authoring.author import AuthoredRules, StopReview, aauthor, author
from formal_llm.authoring.drafts import Draft
from formal_llm.authoring.examples import Example, load_plan_examples, read_plan_examples, write_examples
from formal_llm.authoring.questions import Candidate

__all__ = [
    "AuthoredRules", "Candidate", "Draft", "Example", "StopReview", "aauthor", "author", "load_plan_examples",
    "read_plan_examples", "write_examples",
]  # fmt: skip
