"""From the steps of a run to judged comparisons: what may be claimed of each cell."""
