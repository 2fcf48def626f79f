"""Limits of the numbers of transport in float32."""

MIN_WEIGHT = 1e-30  # lower limit of a weight or a sum, so that it has a logarithm and an inverse
# In the place of an infinite cost, in units of epsilon: no mass goes there, and 0 times it is 0.
FORBIDDEN = 1e20
