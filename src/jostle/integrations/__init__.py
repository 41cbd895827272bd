"""Models of other libraries: Hugging Face transformers and timm, imported only when asked for."""
