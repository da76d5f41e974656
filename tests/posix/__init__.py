"""System calls, against the real system."""
