"""Trials by fire: a light live graph on simulated cameras, watched from outside while it is harmed."""
