"""Wire models: the only home of wire quirks (milliseconds, nulls, exclusive fields)."""
