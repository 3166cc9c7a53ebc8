"""Answers for agents over the Model Context Protocol: what the pages say, as bounded tools, resources and prompts."""
