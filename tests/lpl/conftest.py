"""What the tests of both experiments share."""

import pytest

from common.data.packages import cache_dir
from common.run import cli
from common.run.workdir import Workdir


@pytest.fixture(scope="session")
def run():
    """Runs an experiment in this process, where tests share compilations."""

    def run(workdir, config, values):
        config.update_from_flattened_dict(values)
        work = Workdir(workdir, config.to_dict())
        return cli.experiment("lpl.experiments", config.experiment)(config, work, cache_dir())

    return run
