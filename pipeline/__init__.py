"""Moves typed messages between processes. It has never heard of a picture."""
