"""Many networks of one kind, trained at once from one tensor of weights."""
