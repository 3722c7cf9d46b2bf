"""What editors of rules need: what is wrong where, what a name means, which names there are."""
