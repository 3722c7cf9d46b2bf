"""A provider, a task pack, a toolkit, a notation and an estimator for formal_llm."""
