"""Earlier answers: a cache, and transcripts."""
