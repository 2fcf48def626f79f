"""Tables and figures of the experiments."""
