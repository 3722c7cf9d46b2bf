"""Local models: loading them, and computing the probabilities of a question's options."""
