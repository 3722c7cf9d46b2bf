"""Answers that were given before: a cache, transcripts."""
