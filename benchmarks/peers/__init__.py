"""Other systems at the same work. Each is a program for `.venv-peers`, and imports nothing of Consilium's."""
