"""Zones and lines of the rules: listed, drawn, changed and removed in the files that have them.

Start with `shape_calls.py`. `yaml_edit` changes one value of a YAML file and nothing else in it, comments included.
"""
