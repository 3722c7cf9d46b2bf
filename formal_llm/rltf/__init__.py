"""Reinforcement learning on the rewards of valid plans (RLTF).

The modules form layers; each imports only from layers below its own:

===============================  ====================================================================================
trainer                          a whole run: checkpoints, evaluations, log, stop and resume
update                           one update: gradient and step of the optimizer
collector                        weighted plans to learn from
setup                            the shared setup of a run
report, tabular                  the report of a run; a policy that is a table
all_plans, run_view, settings,   all plans of a task; the terminal display; recipes; reference plans
warm_start
advantages, checkpoint, export,  estimators; checkpoints; for other trainers; the log; the objective and its gradient;
metrics_log, objective,          rewards by tools, and cached; plans drawn from a policy; what is known about the tasks
reference_tools, reward_cache,
rollout, task_memory
baselines, curves, distributed,  moving averages; charts; several processes; plans with their decisions, and distinct
episode, policy, rewards         questions; a model with adapters; what a plan is worth
===============================  ====================================================================================
"""
