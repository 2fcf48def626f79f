"""What to do with a store when its model changes; the names of `migration` are found here too."""

from isthmus import names_of

METRICS = ("cosine", "dot", "hamming")  # the keys of `pairs.METRICS`
__getattr__ = names_of("isthmus.store.migration")
