"""Trials by fire: a light live graph on the camera farm, and what is seen of it from outside while it is harmed."""
