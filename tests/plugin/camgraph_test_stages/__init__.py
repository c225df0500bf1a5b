"""Stages for tests, as a package of their own."""
