"""What an Arbiter shows to Prometheus. Imported only where `--metrics-port` is given.

`catalogue` names every figure, `tally` counts, `look` finds out where things stand, `exposition` writes it
down, `door` serves it.
"""
