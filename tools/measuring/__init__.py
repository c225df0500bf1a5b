"""Shared parts of benchmarks and proofs: runs of cameras and files, processor time, load, plots, pages of a report.

No figure is defined here; `report_page.py` writes results between marks into docs/.
"""
