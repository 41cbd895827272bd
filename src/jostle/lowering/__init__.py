"""Lowering sensitivity while a network is trained: a penalty and an augmentation."""
