#!/usr/bin/env python3
"""A server on PyPI's `mcp` package, version 1 or 2: python_server.py stdio | sse PORT | streamable-http PORT"""
import importlib.metadata
import sys

kind = sys.argv[1]
at = {"host": "127.0.0.1", "port": int(sys.argv[2])} if len(sys.argv) > 2 else {}
if importlib.metadata.version("mcp").startswith("1."):
    from mcp.server.fastmcp import FastMCP

    server, at = FastMCP("python", **at), {}
else:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("no luck")


server.run(transport=kind, **at)
