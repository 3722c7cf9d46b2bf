"""The classical toolkit: image and text tools without neural models."""
