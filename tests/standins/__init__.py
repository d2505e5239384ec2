"""Programs that act as the real clients were seen to do, without a model."""
