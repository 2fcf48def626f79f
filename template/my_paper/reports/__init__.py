"""Tables, figures and published numbers of each experiment, made of its rows."""
