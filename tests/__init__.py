"""The tests mirror formal_llm/ file by file."""
