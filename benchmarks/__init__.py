"""Benchmarks: ratios against named baselines, measured in one run. `make bench` runs them all."""
