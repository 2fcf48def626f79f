"""The published numbers in the package are those of the paper's text, by a few spot checks."""

from anchor_opt import paper


def value(*key):
    return paper.value(paper.WORDS, *key)


def test_table_1():
    assert value("gt", "target", "source", "target", "mrr") == (0.94, 0.00)
    assert value("seed", "target", "target", "source", "mrr") == (0.15, 0.02)
    assert value("bootstrap", "target", "source", "target", "jaccard") == (
        0.52,
        0.00,
    )
    assert value("algorithm1", "target", "target", "source", "cosine") == (
        0.94,
        0.00,
    )


def test_table_5_optimises_the_other_space():
    assert value("bootstrap", "source", "source", "target", "jaccard") == (
        0.49,
        0.00,
    )


def test_a_space_against_itself_and_what_is_not_published():
    assert value("seed", "target", "source", "source", "jaccard") == (1.0, 0.0)
    assert value("oracle", "target", "source", "target", "mrr") is None
    assert value("gt", "target", "source", "target", "p_at_1") is None


def test_table_7():
    def value(method, source, target, metric, optimised="target"):
        return paper.value(paper.IMAGES, method, optimised, source, target, metric)

    assert value("gt", "source", "target", "mrr") == (0.27, 0.01)
    assert value("gt", "target", "source", "jaccard") == (0.10, 0.00)
    assert value("seed", "target", "source", "cosine") == (0.96, 0.00)
    assert value("bootstrap", "source", "target", "mrr") == (0.23, 0.03)
    assert value("bootstrap", "target", "source", "mrr", "source") is None
    assert value("gt", "source", "target", "mrr", "source") == (0.27, 0.01)
