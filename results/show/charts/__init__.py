"""The charts of runs: each a function from a `ChartSource` to its charts."""
