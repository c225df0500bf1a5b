"""Shared parts of benchmarks and proofs: runs of cameras and files, processor time, load, plots, pages of a report.

Start with `report_page.py`, which writes results between marks into docs/. No figure is defined here.
"""
