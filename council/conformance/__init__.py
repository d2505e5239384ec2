"""What any seat's client has to do, tried with the real client before a provider of our own (§14.5)."""
