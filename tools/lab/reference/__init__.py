"""Writes the reference pages, `docs/reference/`, from the definitions in the code: `make reference`.

A page holds no fact of its own. To change one, change the description in the code (a `Field`, the help of an option,
a docstring) and run the command again; `tests/tools/lab/reference` fails while a page is out of date. Start with
`pages.py`.
"""
