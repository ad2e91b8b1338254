"""Calling models: the prompt, the adapters for providers, and what their failures mean.

Loads nothing by itself: the adapters bring the HTTP client with them.
"""
