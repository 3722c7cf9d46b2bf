"""One plan being made, a question at a time."""
