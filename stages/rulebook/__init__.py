"""Rules files: their definition, and what becomes of it."""
