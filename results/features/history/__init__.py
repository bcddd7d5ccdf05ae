"""Many runs over time: which of them are comparable, and where their figures changed."""
