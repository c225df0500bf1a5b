"""The run as it is now: its health, metrics, graph, cameras and rates.

Start with `run_link.py`, which asks the run over its control socket: nothing else here or in the packages above does.
`health_calls`, `graph_calls`, `camera_calls` and `rate_calls` have the calls. `metrics` writes the text for Prometheus,
with the GPUs of `health_calls`; `recent_rates` keeps the last hour.
"""
