"""Domain logic: executions, their output, and what clients may ask of them. No HTTP here."""
