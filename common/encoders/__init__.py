"""Encoders that turn texts and images into vectors, by the weights of their publications."""
