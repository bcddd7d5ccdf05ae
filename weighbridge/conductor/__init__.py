"""The run loop: deploy a layout, have drivers measure its steps, write each down, tear it down, go
on to the next.
"""
