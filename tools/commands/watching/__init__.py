"""Makes a graph out of the few words of `camgraph watch`: cameras, a model, a device.

sources.py      files, folders and addresses -> cameras with names; passwords become variables
models.py       a model -> how its picture is made and how its numbers are read
size.py         some frames of the files -> the size at which the model sees people best
device.py       this machine -> where the model runs, and how many frames at once
graph_text.py   all of it -> the text of a graph
starting.py     all in order, from the command line to the run
outputs.py      where events and videos go, looked at before anything starts

Start with `starting.py`. Nothing here judges or draws: the graph that it writes does.
"""
