"""Reinforcement learning on the rewards of valid plans (RLTF).

The modules stand on floors; each imports only from floors below its own:

===============================  ====================================================================================
trainer                          a whole run: checkpoints, evaluations, log, stop and resume
update                           one update: gradient and step of the optimizer
collector                        plans to learn from, weighed
setup                            what a run is made of, held once
report, tabular                  what became of a run; a policy that is a table
all_plans, run_view, settings,   all plans of a task; what the terminal shows; recipes; reference plans
warm_start
advantages, checkpoint, export,  estimators; checkpoints; for other trainers; the log; the objective and its gradient;
metrics_log, objective,          rewards by tools, and kept; plans drawn from a policy; what is known of the tasks
reference_tools, reward_cache,
rollout, task_memory
baselines, curves, distributed,  moving averages; charts; several processes; a plan with its decisions, and equal
episode, policy, rewards         questions; a model with adapters; what a plan is worth
===============================  ====================================================================================
"""
