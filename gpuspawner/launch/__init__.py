"""How far a pod is between its creation and its server's start, and what goes wrong there."""
