"""The toolkit of neural models."""
