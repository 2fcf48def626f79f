"""Data sets by name, read from pinned packages."""
