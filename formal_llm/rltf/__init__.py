"""Reinforcement learning on the rewards of valid plans (RLTF).

The modules form layers, which are listed in pyproject.toml; each imports only from layers below its own.
"""
