"""From the steps of a run to judged comparisons: what may be said of each cell, and how surely."""
