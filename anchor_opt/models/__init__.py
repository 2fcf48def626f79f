"""Networks that the experiments train: image encoders, and heads on relative vectors."""
