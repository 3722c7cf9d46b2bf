"""The studio: a page in the browser, on this machine only, in which rules are written, seen and tried.

The page asks questions, and a worker process answers them part by part. The server connects the two: it checks who
asks, and ends the worker where a question is given up. The questions are in :mod:`formal_llm.studio.questions`.
"""
