"""System calls: bytes, paths, ints. No models, no HTTP."""
