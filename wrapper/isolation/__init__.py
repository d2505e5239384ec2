"""How a seat's client is kept apart: another user, a fence around its packets, one around its files (§14.2).

`launch`, `fence` and `attempts` are pure. `launcher`, `keeper` and `probe` run in the client's place, by
their path and on the standard library alone: no other module imports them for what they do there.
"""
