"""Harms cameras of a whole graph: what the run reports, when the camera is back, and what the others lose."""
