"""Whether a plan follows the rules, and why not."""
