"""A provider, a task pack, a toolkit and a notation for formal_llm."""
