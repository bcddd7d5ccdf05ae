"""The native part of the Locust driver: Rust threads that make requests and count them without the GIL."""
