"""Frozen rows for the panels, built by pure functions from what the engine already decided.

One module per panel. Each reads an :class:`~memory_core.prompt.Assembly`, a trace or stored
messages and returns values that can be drawn without another thought. Nothing here imports
Streamlit, and nothing plans a window, ranks a hit or counts a prompt a second time.
"""
