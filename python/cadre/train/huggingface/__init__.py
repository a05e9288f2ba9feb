"""Training with libraries of Hugging Face."""
