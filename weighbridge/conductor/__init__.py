"""The run loop: deploy a layout, measure its steps, record each, tear it down, and so on."""
