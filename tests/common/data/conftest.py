import pytest

from tests import own_cache


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A cache with all packages and nothing built from them before this module."""
    return own_cache.linked(tmp_path_factory.mktemp("bare"), ["packages"])
