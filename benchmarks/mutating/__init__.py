"""What changes a line of code in one place, and runs tests over it."""
