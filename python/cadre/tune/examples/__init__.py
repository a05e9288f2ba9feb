"""What the guides of Ray Tune import, under the same names."""
