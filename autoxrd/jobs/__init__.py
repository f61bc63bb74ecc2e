"""The life of a job in the service: what is asked, who does which step when, and what happens when somebody dies.

* :mod:`~autoxrd.jobs.request`: what a client asks for, checked.
* :mod:`~autoxrd.jobs.work`: one bounded step of one job (read the input, prepare, one attempt, conclude, report).
* :mod:`~autoxrd.jobs.host`: the process that does steps; it is killed when a job is cancelled.
* :mod:`~autoxrd.jobs.slot`: claims a job, lets its host do the step, keeps the lease alive, kills on cancellation.
* :mod:`~autoxrd.jobs.local`: several slots in one process, without a broker.
* :mod:`~autoxrd.jobs.reaper`: takes leases from workers that no longer show that they live.
"""
