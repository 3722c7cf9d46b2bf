"""Shell lines, read into their commands and words, so that rules need no patterns over text."""
