"""Readers of files by format; what a user's file has wrong is one sentence."""
