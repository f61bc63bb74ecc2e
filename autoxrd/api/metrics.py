"""What does this process count? Prometheus metrics in a registry of their own."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("autoxrd_http_requests_total", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "autoxrd_http_request_seconds",
            "Time to the end of the answer.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.jobs = Gauge("autoxrd_jobs", "Jobs by state.", ("state",), registry=self.registry)
        self.submitted = Counter(
            "autoxrd_jobs_submitted_total", "Jobs accepted by this process.", registry=self.registry
        )
        self.streams = Gauge("autoxrd_event_streams", "Event streams open in this process.", registry=self.registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request; ``route`` is the template, not the path, so labels stay few."""
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(method, route).observe(seconds)

    def exposition(self, jobs: Mapping[str, int]) -> bytes:
        """Return the text that Prometheus reads.

        Args:
            jobs: number of jobs by state, now.
        """
        self.jobs.clear()
        for state, count in jobs.items():
            self.jobs.labels(state).set(count)
        return generate_latest(self.registry)
