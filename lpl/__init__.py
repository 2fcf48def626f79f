"""The locality preserving loss: cross-lingual word alignment, and a regulariser for inference."""
