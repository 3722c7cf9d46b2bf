"""Task data, made from available images and texts."""
