"""One module for each experiment, which a config names: cases, and a way to show them."""
