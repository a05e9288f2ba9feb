"""What connects trials with other libraries."""
