"""A bench of single defects: does the strongest feature name the cause?"""
