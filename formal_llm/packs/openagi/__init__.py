"""The code of the OpenAGI pack: tools, task data, scores, the benchmark.

- :mod:`~formal_llm.packs.openagi.toolkits`: the toolkits by name, and the tools that work without weights.
- :mod:`~formal_llm.packs.openagi.experts.toolkit`: the fifteen tools as neural models.
- :mod:`~formal_llm.packs.openagi.data.making`, :mod:`~formal_llm.packs.openagi.data.samples`: the task data.
- :mod:`~formal_llm.packs.openagi.scores.images`, :mod:`~formal_llm.packs.openagi.scores.text`: how close an output is
  to the expected value; :mod:`~formal_llm.packs.openagi.scores.neural`: scores by vision models.
- :mod:`~formal_llm.packs.openagi.scores.judging`: the value of a plan on task data;
  :mod:`~formal_llm.packs.openagi.references`: the tools that a task's sentence requires.
- :mod:`~formal_llm.packs.openagi.benchmark.plans`: the comparison of models and methods.
"""
