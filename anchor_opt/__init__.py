"""Anchor optimisation (Cannistraci et al. 2023): from few known pairs to many parallel anchors."""
