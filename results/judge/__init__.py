"""What may be said of a run: doubts, comparisons, who leads, and the words for it."""
