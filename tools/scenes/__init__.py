"""Worlds without a camera, on which rules, graphs and this project are tried.

`animator` moves people made of numbers, and `simulator` serves clips as RTSP cameras with faults. Start with
`animator/scene.py`.
"""
