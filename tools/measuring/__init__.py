"""What a machine and its processes do: processor time, memory, load, GPUs, and plots of figures.

Start with `processes.py`. The commands `plan`, `doctor` and `model bench` measure with these, and so does the lab.
Nothing here judges a figure.
"""
