"""Trials by fire: a light live graph on simulated cameras, and what is seen of it from outside while it is harmed."""
