"""The packages of the distribution, those of a fork's papers included; the rest: pyproject.toml."""

from setuptools import find_namespace_packages, find_packages, setup

setup(
    packages=[
        *find_packages(),
        *find_namespace_packages(include=["configs", "configs.*"], exclude=["*.__pycache__"]),
    ]
)
