"""The benchmark of methods that make a model plan."""
