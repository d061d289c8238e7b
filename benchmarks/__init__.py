"""Benchmarks: ratios measured in one run against named baselines. `make bench` runs them all."""
