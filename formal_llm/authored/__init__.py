"""What people write down and the library reads: where it is, how a file is read, what may be in a table."""

from formal_llm.authored.places import find, names

__all__ = ["find", "names"]
