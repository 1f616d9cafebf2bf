"""The line of people who wait for room: who is next, on which nodes, and how long it may take.

The rule itself is pure, so that a simulation and property tests run the very code that the hub
runs; `tickets.Room` is what it asks about nodes. Looking at the line takes at most a tenth of the
hub's time. Who isn't in it takes no room that somebody in it collects.

`Line` is those who wait, in their order; `WaitingLine` calls them when the nodes that `LineRoom`
shows have room; `InLine` is the wait of one start. Begin with `order` for the rule, and `in_line`
for one person's way.
"""
