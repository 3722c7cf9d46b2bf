"""Hard cases for the engine, a module for each subject; :mod:`benchmarks.strain` runs them."""
