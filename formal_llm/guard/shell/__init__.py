"""Shell lines, parsed into commands and words, so that rules need no text patterns."""
