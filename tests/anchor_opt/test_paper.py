"""The published numbers in the package are those of the paper's text, by a few spot checks."""

from anchor_opt import paper


def test_table_1():
    assert paper.value("gt", "target", "source", "target", "mrr") == (0.94, 0.00)
    assert paper.value("seed", "target", "target", "source", "mrr") == (0.15, 0.02)
    assert paper.value("bootstrap", "target", "source", "target", "jaccard") == (0.52, 0.00)
    assert paper.value("algorithm1", "target", "target", "source", "cosine") == (0.94, 0.00)


def test_table_5_optimises_the_other_space():
    assert paper.value("bootstrap", "source", "source", "target", "jaccard") == (0.49, 0.00)


def test_a_space_against_itself_and_what_is_not_published():
    assert paper.value("seed", "target", "source", "source", "jaccard") == (1.0, 0.0)
    assert paper.value("oracle", "target", "source", "target", "mrr") is None
    assert paper.value("gt", "target", "source", "target", "p_at_1") is None
