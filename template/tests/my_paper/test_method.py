import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

from common.errors import UserError
from common.run.workdir import Workdir
from configs.my_paper.main_table import get_config
from my_paper import method
from my_paper.experiments import main_table


def test_classes_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(60, 5)), np.arange(60) % 3
    classes = method.classify(x, method.means(x, labels, 3))
    np.testing.assert_array_equal(classes, NearestCentroid().fit(x, labels).predict(x))


def test_more_training_images_than_there_are_are_refused(tmp_path):
    config = get_config()
    config.num_train = 1_797
    with pytest.raises(UserError, match="num_train is 1,797 of 1,796 images"):
        main_table.run(config, Workdir(tmp_path, {}), tmp_path)
