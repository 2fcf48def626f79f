"""Compiler flags for quick runs and tests, which mostly compile: that takes a third of the time."""

import jax

FLAGS = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0"
    " --xla_cpu_parallel_codegen_split_count=1"
)
if jax.__version_info__ < (0, 11):  # later versions refuse this flag
    FLAGS += " --xla_cpu_use_fusion_emitters=false"
