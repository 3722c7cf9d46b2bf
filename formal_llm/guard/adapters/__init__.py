"""A guard in front of the agents of other frameworks: PydanticAI, LangChain, OpenAI Agents, and custom loops.

Each module needs only its own framework: import the one you use.
"""
