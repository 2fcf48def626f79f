"""Installs the packages of the isthmus distribution (tool settings are in pyproject.toml)."""

from pathlib import Path

from setuptools import find_packages, setup

# Floors are what the code needs; ceilings are the newest that the whole test suite has passed on.
REQUIREMENTS = [
    "absl-py>=2.1",
    "array_record>=0.8",  # TFDS storage that needs no TensorFlow
    "flax>=0.12,<0.13",
    "importlib_resources>=6.0",  # tensorflow-datasets imports it without declaring it
    "jax>=0.10,<0.12",
    "jaxtyping>=0.3",
    "markdown-it-py>=3.0",
    "matplotlib>=3.9",
    "ml_collections>=1.0",
    "mmh3>=5.0",  # the hash of floret vectors
    "msgpack>=1.0",  # spaCy's wheel of French vectors keeps its index so
    "networkx>=3.3",
    "numpy>=2.0",
    "optax>=0.2.5,<0.3",
    "orbax-checkpoint>=0.11,<0.13",
    "ott-jax>=0.6,<0.7",
    "pyarrow>=17",  # parquet and Arrow files, the words of the GloVe wheel among them
    "safetensors>=0.5",
    "scikit-learn>=1.6",
    "scipy>=1.14",
    "tensorboardX>=2.6",
    "tensorflow-datasets>=4.9.9",
    "tokenizers>=0.20",
    "tqdm>=4.66",
]

setup(
    name="isthmus",
    version="0.1.0",
    description="How two embedding spaces correspond: four published systems in JAX.",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(exclude=["tests*", "benchmarks*", "template*"]),
    py_modules=["isthmus"],
    entry_points={"console_scripts": ["isthmus = isthmus:main"]},
    install_requires=REQUIREMENTS,
    extras_require={
        "test": [
            "basedpyright>=1.30",
            "beartype>=0.22",
            "hypothesis>=6.100",
            "pot>=0.9.5",
            "pytest>=8.0",
            "pytest-xdist>=3.6",
            "ruff>=0.9",
        ],
        "cuda": ["jax[cuda13]>=0.10,<0.12"],
        # The compilers alone (250 MB), for benchmarks/compile.py on a machine without accelerator
        "compile": ["jax[tpu]>=0.10,<0.12", "jax-cuda13-plugin>=0.10,<0.12"],
    },
)
