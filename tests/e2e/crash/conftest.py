"""Crash-only: any part may be killed at any moment, and everything acknowledged is still true."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
