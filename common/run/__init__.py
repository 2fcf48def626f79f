"""What a run needs: its command line, values, folder, training loop, results and records."""
