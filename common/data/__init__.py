"""Data sets, readers of files, and where they come from."""
