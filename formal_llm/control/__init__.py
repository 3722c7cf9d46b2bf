"""Supervisory control: whether rules can still be kept, whatever comes (Ramadge and Wonham 1987).

A :class:`~formal_llm.control.plant.Plant` lists what can happen, a
:class:`~formal_llm.control.machines.Machine` is a rule as it runs, a
:class:`~formal_llm.control.component.Component` steps rules that look at the same tools together, and the
:class:`~formal_llm.control.supervisor.Supervisor` looks ahead. Begin there.
"""
