"""Greets, as the template's environment says."""
import os

print(os.environ["GREETING"], "from a sandbox")
