"""The offline toolkit: image and text tools without neural models."""
