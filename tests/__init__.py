"""Tests, laid out as the package is; `support` is what they share."""
