"""How a seat's client is driven: one contract, one adapter a way of driving, one preset a client (§3.3.B)."""
