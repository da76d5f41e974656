"""Every limit at its edge, and what the daemon says of itself when one is reached."""
