"""SOPBench: its cases, the procedures of its domains, and how they are run."""
