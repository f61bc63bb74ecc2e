"""The tools of AutoXRD for agents that speak the Model Context Protocol."""
