"""Pictures as data, and what they look like."""
