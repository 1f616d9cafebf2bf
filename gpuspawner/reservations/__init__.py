"""What is promised to one start: room on nodes and a part of limits, until its pod shows both."""
