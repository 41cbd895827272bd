"""Paper 3, "Word Sensitivity of Attention Layers" (arXiv 2402.02969): one file a study."""
