"""Paper 1, "Transformers Learn Low Sensitivity Functions" (arXiv 2403.06925): one file a figure or table."""
