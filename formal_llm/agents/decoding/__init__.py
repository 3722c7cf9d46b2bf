"""Text that a model writes under rules, as it is decoded."""
