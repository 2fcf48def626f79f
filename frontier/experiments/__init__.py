"""The experiments, one file each; a config names one."""
