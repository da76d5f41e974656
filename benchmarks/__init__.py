"""What execd costs, as ratios to floors measured in the same run. `python -m benchmarks --help`."""
