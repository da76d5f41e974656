"""The domain logic, without HTTP."""
