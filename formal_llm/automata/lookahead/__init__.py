"""Whether a configuration can still be completed, how soon, and in how many ways."""
