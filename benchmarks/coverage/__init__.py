"""Do stated uncertainties hold? Patterns drawn at random from known models, refined by the rules planner."""
