"""The ways in which lines leave through a socket; `stages.sink_socket` chooses one."""
