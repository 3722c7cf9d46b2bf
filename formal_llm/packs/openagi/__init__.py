"""What the OpenAGI pack needs beside its text: tools, task data, scores.

- :mod:`~formal_llm.packs.openagi.classical`: the tools that work without weights.
- :mod:`~formal_llm.packs.openagi.data`, :mod:`~formal_llm.packs.openagi.samples`: making and reading task data.
- :mod:`~formal_llm.packs.openagi.scores`: how near an output is to what was expected.
"""
