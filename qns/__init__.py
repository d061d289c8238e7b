"""QNS, the Quality Notification Service."""

__version__ = "0.1.0"
