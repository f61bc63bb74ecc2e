"""The pages of the service: rendered here, quickened by a little script, complete without a network.

* :mod:`~autoxrd.web.app`: puts the pages into the application.
* :mod:`~autoxrd.web.guard`: who is looking, and was a form made by us?
* :mod:`~autoxrd.web.rendering`: templates, headers, error pages.
* :mod:`~autoxrd.web.assets`: the files that pages load.
* :mod:`~autoxrd.web.words`: how states, times and amounts are written.
* One module for each page: ``login``, ``listing``, ...
"""
