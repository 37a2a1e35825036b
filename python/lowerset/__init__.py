"""Lowerset: train a module inside a memory budget."""
