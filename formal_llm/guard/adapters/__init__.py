"""A guard in front of the agents of other frameworks: PydanticAI, LangChain, OpenAI Agents, and loops of one's own.

Each module needs its framework, and only that: import the one you use.
"""
