"""Paper 2, "Why are sensitive functions hard for transformers?" (2402.09963): one file for each figure."""
