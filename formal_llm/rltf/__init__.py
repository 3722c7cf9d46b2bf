"""Reinforcement learning on the rewards of valid plans (RLTF). The modules import each other without circles."""
