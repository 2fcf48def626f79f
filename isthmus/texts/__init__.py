"""Files of texts, and encoding them."""
