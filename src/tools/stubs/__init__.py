"""Tools outside this sandbox, a package for each server: see /holt/tools/README.md."""

from ._call import ToolError, call, search

__all__ = ["ToolError", "call", "search"]
