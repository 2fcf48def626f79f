"""Tables, figures and published numbers of the experiments."""
