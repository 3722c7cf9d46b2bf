"""Questions about whole languages: their words, differences, nearest words, and why one is empty."""
