"""What the OpenAGI pack needs beside its text: tools, task data, scores, the benchmark.

- :mod:`~formal_llm.packs.openagi.classical.toolkit`: the tools that work without weights.
- :mod:`~formal_llm.packs.openagi.text_tools`: the text tools by a language model that runs here.
- :mod:`~formal_llm.packs.openagi.experts.toolkit`: the fifteen tools as neural models.
- :mod:`~formal_llm.packs.openagi.data.making`, :mod:`~formal_llm.packs.openagi.data.samples`: its task data.
- :mod:`~formal_llm.packs.openagi.scores.images`, :mod:`~formal_llm.packs.openagi.scores.text`: how near an output is to
  what was expected; :mod:`~formal_llm.packs.openagi.scores.neural`: those that look at pictures with a model.
- :mod:`~formal_llm.packs.openagi.scores.judging`: what a plan is worth on task data;
  :mod:`~formal_llm.packs.openagi.references`: which tools a task's sentence calls for.
- :mod:`~formal_llm.packs.openagi.benchmark.run`: models and methods side by side.
"""
