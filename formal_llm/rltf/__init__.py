"""Reinforcement learning on the rewards of valid plans (RLTF)."""
