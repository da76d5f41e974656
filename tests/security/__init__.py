"""Who may call, what a child inherits, who it runs as, and what nobody gets to see."""
