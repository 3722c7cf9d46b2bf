"""The benchmark of four ways of asking a model for a plan."""
