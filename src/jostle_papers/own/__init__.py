"""Questions of our own, beyond the papers: one file a study."""
