"""The experts: the toolkit of neural models."""
