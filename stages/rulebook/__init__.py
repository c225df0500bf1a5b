"""Rules files: their definition, their checks, and the rules made of them."""
