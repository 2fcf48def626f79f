"""Tables and figures of the experiments, from their rows, and the paper's numbers."""
