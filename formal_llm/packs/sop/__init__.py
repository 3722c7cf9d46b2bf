"""SOPBench: procedures for its domains, run on a user's own copy of the benchmark, judged by its own judge."""
