"""Measurements of this project on this machine; `python -m benchmarks` prints them."""
