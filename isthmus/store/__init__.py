"""What to do with a store when its model changes: `isthmus migrate`, and whether it is right."""

METRICS = ("cosine", "dot", "hamming")  # the keys of `pairs.METRICS`
