"""My paper: the nearest class mean as a classifier of digits (a made-up example).

Read method.py for the mathematics and experiments/ for what is measured.
"""
