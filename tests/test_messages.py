"""Input that commands and experiments refuse: one sentence, exit code 2, and nothing is written."""

import importlib
import re

import numpy as np
import pytest

from common import alignment
from common.data.packages import cache_dir
from common.errors import UserError
from common.run import launch, settings
from common.run.workdir import Workdir
from tests import commands
from tests.samples import normal

WORDS = [f"w{i}" for i in range(30)]


def lines(words, vectors):
    rows = zip(words, vectors.tolist(), strict=True)
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Two spaces of thirty words, of three numbers and two, and a map of the first."""
    folder = tmp_path_factory.mktemp("good")
    x, y = normal(0, 30, 3), normal(1, 30, 2)
    (folder / "x.vec").write_text(lines(WORDS, x))
    np.savez(folder / "y.npz", words=np.array([f"v{i}" for i in range(30)]), vectors=y)
    alignment.fit("least_squares", x, y, names=("old", "new")).save(folder / "map.npz")
    return folder


ALIGN = "align --source=good/x.vec --target=good/y.npz"
SOURCE = "align --source={file} --target=good/y.npz --out=out"
APPLY = "apply good/x.vec --map=good/map.npz"
MIGRATE = "migrate --old=good/x.vec --new=good/x.vec --out=out"
RAGGED = lines([*WORDS, "last"], np.ones((31, 3)))[:-5] + "\n"
PAPER = "cannot name a paper: give a Python name in lower case"

# (command, files that are there, of which {file} is the first, and pattern of the sentence)
COMMANDS = [
    (
        "alin",
        {},
        "no command 'alin': choose one of align, apply, migrate, check, encode, run, new.",
    ),
    ("--config=a", {}, "no command '--config=a'"),
    ("new", {}, f"'' {PAPER}"),
    ("new My-Paper", {}, f"'My-Paper' {PAPER}"),
    ("new class", {}, f"'class' {PAPER}"),
    ("new lpl", {}, "a module 'lpl' already: give the paper another name."),
    ("run numpy", {}, "no paper 'numpy': give one of anchor_opt"),
    (SOURCE, {"none.npz": None}, "Cannot read .*none.npz"),
    (SOURCE, {"ragged.vec": RAGGED}, "line 31 .* 3 numbers"),
    (SOURCE, {"same.vec": lines("abc", np.ones((3, 2)))}, "mean of the"),
    (SOURCE, {"few.vec": "a 1 2\nb 2 1\nc 3 1\n"}, "at least 20"),
    (ALIGN, {}, "no --out"),
    ("align --source=good/x.vec --out=out", {}, "Give --source and --target"),
    (f"{ALIGN} --source=good/x.vec --out=out", {}, "x.vec is given twice"),
    (f"{ALIGN} --pairs={{file}} --out=out", {"p": "v1 w1\nw x\n"}, "None of the 2 pairs.*its orde"),
    (f"{ALIGN} --pairs={{file}} --out=out", {"p": "1 1\n"}, "Give --pair_rows if they are row num"),
    (f"{ALIGN} --pairs={{file}} --pair_rows --out=out", {"p": "w1 v2\n"}, "pair 'w1', 'v2', but"),
    (f"{ALIGN} --pairs=p --pairs=q --out=out", {}, "2 --pairs for 1"),
    (f"{ALIGN} --out={{file}}", {"file": ""}, "holds no alignment"),
    (f"{ALIGN} --out={{file}}/out", {"file": ""}, "Cannot write|Not a directory"),
    (f"{ALIGN} --out=.", {"file": ""}, "holds no alignment"),
    ("apply --map=good/map.npz --out=out.npy", {}, "no vectors: give their files after 'apply'"),
    ("apply good/x.vec --out=out.npy", {}, "no --map"),
    (APPLY, {}, "no --out"),
    ("apply good/x.vec --map=good/x.vec --out=out.npy", {}, "not an aligner"),
    ("apply none.npy --map=good/map.npz --out=out.npy", {}, "Cannot read none.npy"),
    (f"{APPLY} --side=target --out=out.npy", {}, "give rows .n, 2."),
    (f"{APPLY} --out=out.bin", {}, "ends with .npy, .npz, .pa"),
    (f"{APPLY} --out={{file}}", {"file.npy": ""}, "exists already"),
    (f"{APPLY} good/x.vec.gz --out=out", {}, "2 of the files would be"),
    (f"{MIGRATE} --out=", {}, "no --out"),
    (f"{MIGRATE} --old=", {}, "no --old"),
    (f"{MIGRATE} --out=good", {}, "exists and is not an empty folder"),
    (f"{MIGRATE} --pairs={{file}}", {"p": "a b\n"}, "None of the 1 pairs"),
    (f"{MIGRATE} --pairs={{file}}", {"p": "1 1\n"}, "Give --pair_rows if"),
    (f"{MIGRATE} --old_queries=good/x.vec", {}, "no --new_queries"),
    (f"{MIGRATE} --old_queries=good/x.vec --new_queries=good/y.npz", {}, "other ids or another or"),
]


@pytest.mark.parametrize(("command", "files", "sentence"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_refuses_it(good, tmp_path, monkeypatch, capfd, command, files, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # undone afterwards, as what the command prepends
    (tmp_path / "good").symlink_to(good)
    there = {name: text for name, text in files.items() if text is not None}
    for name, text in there.items():
        (tmp_path / name).write_text(text)
    words = command.format(file=next(iter(files), "")).split()
    error = commands.refused(monkeypatch, capfd, "isthmus", *words)
    assert re.search(sentence, error), error
    assert {path.name for path in tmp_path.iterdir()} == {"good", *there}
    assert len(list(good.iterdir())) == 3


LPA = {"methods": ("lpa_mse",), "num_pairs": (50,), "max_rows": 2_000, "lpa_mse.updates": 10}
LSTM = {"pairs": ("LSTM-glove",)}
TUNED = {"recipes": ("tuned",), "methods": ("kl",)}
TO_ZERO = {"tuned.wasserstein.epsilon": (0.3, 0.0)}
UNCONNECTED = {"graph": "block", "graph_options.block.p_out": 0.0}
# (paper and config, values of its quick form, and pattern of the sentence)
VALUES = [
    ("anchor_opt/retrieval", {"source": "missing.vec"}, "neither a file of vectors nor one of"),
    ("anchor_opt/retrieval", {"methods": ("gt", "magic")}, "no method 'magic'"),
    ("anchor_opt/retrieval", {"optimise": ("both",)}, "no role 'both'"),
    ("anchor_opt/retrieval", {"num_words": 100, "num_anchors": 101}, "do not fit"),
    ("anchor_opt/retrieval", {"num_words": 100_000}, "share 14689 words"),
    ("anchor_opt/ablation", {"vary": (("num_pears", (5,)),)}, "num_pears"),
    ("anchor_opt/ablation", {"vary": ("num_pairs", (5,))}, "config.vary has 'num_pairs'"),
    ("anchor_opt/ablation", {"vary": (("k", ("many",)),)}, "k can't be 'many'"),
    ("frontier/spaces", {"pairs": ("glove",)}, "'glove' of config.pairs is no pair"),
    ("frontier/bridge", {"spaces": ("glove", "word2vec")}, "three or more"),
    ("frontier/bridge", {"num_rows": 100_000}, "fewer than num_rows=100000"),
    ("frontier/overlap", {"shared": (0.5, 1.5)}, r"shared is 1\.5: choose a number from 0 to 1"),
    ("frontier/halves", {"half_rows": (0, 100)}, "half_rows is 0: choose at least 1"),
    ("anchor_opt/stitching", {"heads": ("magic",)}, "no head 'magic': choose one of publ"),
    ("anchor_opt/stitching", {"num_anchors": 801}, "do not fit"),
    ("anchor_opt/stitching", {"num_unlabelled": 10**6}, "1,000,000 sentences of reviews are too"),
    ("anchor_opt/stitching", {"num_test": 0, "num_unlabelled": 0}, "test texts of .* is 0"),
    ("anchor_opt/stitching", {"pairs": ()}, "number of pairs is 0"),
    ("anchor_opt/vision", {"pairs": ("vit:augnet_resnet50",)}, "no encoder 'vit': choose one"),
    ("lpl/nli", {"methods": ("magic",)}, "no method 'magic'"),
    ("lpl/nli", {"num_pairs": (301,)}, "asks for 301 .* has 300: lower num_pairs or raise max"),
    ("lpl/nli", {"split": "train"}, "no split 'train': choose one of test, validation"),
    ("lpl/nli", {"num_neighbours": 150}, "num_neighbours is 150 of 149 other pairs"),
    ("lpl/nli", {"updates": 0}, "updates is 0: choose at least 1"),
    ("lpl/nli", {"map": "cubic"}, "no map 'cubic'"),
    ("lpl/word_alignment", {"methods": ("magic",)}, "no method 'magic': choose one of shigeto_20"),
    ("lpl/word_alignment", {"dictionaries": ("no.txt",)}, "neither a file of word pairs"),
    ("lpl/word_alignment", {"num_pairs": (9**9,), "max_pairs": ()}, "too few for 387420489"),
    ("lpl/word_alignment", {"sources": ("a", "b")}, "2 sources, 1 targets, .* every pair of spac"),
    ("lpl/word_alignment", {"split": "train"}, "no split 'train': choose one of test, validation"),
    ("lpl/word_alignment", {"num_test": 0}, "number of words to translate is 0"),
    ("lpl/word_alignment", LPA | {"lpa_mse.k": 10**6}, "k is 1,000,000 of [0-9,]* other rows"),
    ("lpl/word_alignment", LPA | {"lpa_mse.retrieval": ("guess",)}, "no retrieval 'guess'"),
    ("lpl/word_alignment", LPA | {"lpa_mse.weights": "guess"}, "choose one of closed_form"),
    ("lpl/constants", {"vary": (("experiment", ("nli",)),)}, "no experiment 'experiment': choose"),
    ("embed_match/match", {"pairs": ("C1-C9",)}, "no embedding 'C9'"),
    ("embed_match/match", {"pairs": ("C1",)}, "'C1' is not a pair"),
    ("embed_match/match", {"pairs": ()}, "number of cases is 0"),
    ("embed_match/match", {"random_seeds": ()}, "number of random seeds is 0"),
    ("embed_match/match", {"models.C1.kind": "bert"}, "no kind of C1 'bert'"),
    ("embed_match/match", LSTM | {"models.LSTM.init_from": "glove"}, "from 'glove'"),
    ("embed_match/match", {"ranks": ("1-9", "ten")}, "'ten' are no ranks"),
    ("embed_match/match", {"num_texts": 10**6}, "num_texts is 1,000,000 of [0-9,]* texts of"),
    ("embed_match/match", {"num_words": 10**6}, "num_words is 1,000,000 of [0-9,]* different wor"),
    ("embed_match/correlate", {"tasks": ("poetry",)}, "no task 'poetry'"),
    ("embed_match/correlate", {"embeddings": ("C1", "C2")}, "embeddings is 2: .* at least 3"),
    ("embed_match/ensemble", {"embeddings": ("C1", "C1")}, "embeddings is 1: .* at least 2"),
    ("wasserstein_embed/graphs", {"graph": "square"}, "no graph 'square'"),
    ("wasserstein_embed/graphs", {"methods": ("euclid",)}, "no geometry 'euclid'"),
    ("wasserstein_embed/graphs", {"recipes": ("best",)}, "no recipe 'best'"),
    ("wasserstein_embed/graphs", {"num_graphs": 0}, "num_graphs is 0: choose at least 1"),
    ("wasserstein_embed/graphs", {"num_nodes": 1}, "num_nodes is 1: choose at least 2"),
    ("wasserstein_embed/graphs", {"graph_options.scale_free": {"m": 64}}, "'scale_free' are wrong"),
    ("wasserstein_embed/graphs", UNCONNECTED, "None of 100 samples"),
    ("wasserstein_embed/graphs", TO_ZERO, "from 0.3 to 0 as a geometric"),
    ("wasserstein_embed/graphs", TUNED | {"tuned.kl.schedule": "linear"}, "no schedule 'linear'"),
    ("wasserstein_embed/images", {"methods": ("magic",)}, "no method 'magic': choose one of sink"),
    ("wasserstein_embed/images", {"dataset": "/nowhere"}, "There is no image set '/nowhere'"),
    ("wasserstein_embed/words", {"geometries": ("spherical",)}, "no geometry 'spherical'"),
    ("wasserstein_embed/words", {"num_words": 9}, "The 9 words of the texts have 0 of the pairs"),
]


@pytest.mark.network
@pytest.mark.parametrize(("config", "values", "sentence"), VALUES, ids=range(len(VALUES)))
def test_an_experiment_refuses_it(tmp_path, config, values, sentence):
    made = importlib.import_module(f"configs.{config.replace('/', '.')}").get_config()
    made.quick = True
    settings.apply_quick(made, values)
    run = launch.experiment(f"{config.partition('/')[0]}.experiments", made.experiment)
    with pytest.raises(UserError, match=sentence):
        run(made, Workdir(tmp_path, made.to_dict()), cache_dir())
    assert not (tmp_path / "table.md").exists()
