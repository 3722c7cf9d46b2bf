"""Questions about whole languages: their words, differences, nearest words, why one is empty."""
