"""Programs that run in a client's place and speak with it, for clients that cannot be asked once and done."""
