"""AutoXRD: autonomous Rietveld refinement that can show why it did each thing."""

__version__ = "0.1.0"
