"""The engine, proved from outside: real processes that misbehave, real faults."""
