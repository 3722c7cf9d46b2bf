"""Models on this machine: loading them, and the probabilities that they give to the options of questions."""
