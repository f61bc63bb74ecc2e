"""The ``prepare`` command: from checked input to the first state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_build import build_instrument, build_phase, shared_sites
from axr_certified import known_cells
from axr_curves import chebyshev_rows, peak_width, seed_background
from axr_private import restored
from axr_seeds import background_model, seed_scales
from axr_state import State
from axr_wire import Refused
from rietx.crystallography import dispersion

__all__ = ["held_origin", "prepare", "with_dispersion"]

DEFAULT_TERMS = 8
MINIMUM_POINTS = 50
SHARE = 0.6
"""Gaussian and Lorentzian parts of an X-ray peak start at this share of its width each: a pseudo-Voigt
of two equal components of 0.6 has a width of 0.98 (Thompson, Cox & Hastings 1987)."""
FALLBACK_WIDTH_STEPS = 5.0

SETTINGS = (
    "form_factors",
    "two_theta_limits",
    "background_terms",
    "size_seed",
    "excluded_regions",
    "dispersion",
    "known_cells",
)


def prepare(request: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
    """Return the first state.

    Args:
        request: ``instrument``, ``structures``, ``settings`` and ``axis``, our JSON.
        arrays: ``x``, ``y``, ``sigma``, shape (n,).

    Raises:
        Refused: the input cannot be refined by this engine.
    """
    settings = _checked_settings(request["settings"])
    if request["axis"] != "two_theta_deg":
        raise Refused("input", "axis_unsupported", f"rietx refines against 2theta only, not {request['axis']}.")
    if not request["structures"]:
        raise Refused("input", "no_phase", "There is no phase to refine.")
    notices: list[tuple[str, str]] = []
    instrument, assumed = build_instrument(request["instrument"], notices)
    neutron = request["instrument"]["radiation"] == "neutron"
    form_factors = settings.get("form_factors", "neutral")
    phases = [
        build_phase(item, form_factors=form_factors, neutron=neutron, notices=notices) for item in request["structures"]
    ]
    state = State(
        structure=rx.Structure(phases=phases),
        instrument=instrument,
        x=arrays["x"].astype(np.float64),
        y=arrays["y"].astype(np.float64),
        sigma=arrays["sigma"].astype(np.float64),
        limits=_limits(settings),
        excluded=_regions(settings),
        domain=tuple(request["structures"]),
        shared=tuple(shared_sites(phase) for phase in phases),
        known_cells=known_cells(settings, [phase.name for phase in phases]),
        radius_assumed=assumed,
    )
    if int(state.used().sum()) < MINIMUM_POINTS:
        raise Refused("input", "range_empty", f"Fewer than {MINIMUM_POINTS} points remain in the range.")
    state = with_dispersion(state, settings.get("dispersion", "auto"), notices)
    try:
        state = held_origin(_seeded(state, request["instrument"], settings, neutron, notices))
    except (ValueError, KeyError, ArithmeticError) as error:
        text = f"rietx cannot compute this model: {str(error)[:400]}"
        raise Refused("input", "model_rejected", text) from error
    return replace(state, notices=tuple(dict.fromkeys(notices)))


def _checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(settings) - set(SETTINGS))
    if unknown:
        raise Refused("input", "setting_unknown", f"Unknown engine settings {unknown}; known are {list(SETTINGS)}.")
    if settings.get("form_factors", "neutral") not in ("neutral", "as_given"):
        raise Refused("input", "setting_invalid", "form_factors is 'neutral' or 'as_given'.")
    return settings


def _limits(settings: dict[str, Any]) -> tuple[float, float] | None:
    limits = settings.get("two_theta_limits")
    if limits is None:
        return None
    lower, upper = float(limits[0]), float(limits[1])
    if not lower < upper:
        raise Refused("input", "range_reversed", "two_theta_limits must be (lower, upper).")
    return lower, upper


def _regions(settings: dict[str, Any]) -> tuple[tuple[float, float], ...]:
    return tuple((float(region[0]), float(region[1])) for region in settings.get("excluded_regions") or ())


def with_dispersion(state: State, wish: str, notices: list[tuple[str, str]]) -> State:
    """Give the elements whose tabulated f', f'' do not apply (an absorption edge nearby) a stated pair instead."""
    source = state.instrument.source
    if source.kind != "xray_cw":
        return state
    instrument = state.instrument.model_copy(deep=True)
    if wish == "none":
        instrument.source.dispersion = None
        return replace(state, instrument=instrument)
    lengths = tuple(line.wavelength.value for line in source.lines)
    species = dict.fromkeys(atom.species for phase in state.structure.phases for atom in phase.atoms)
    given: dict[str, tuple[float, float]] = {}
    for element in dict.fromkeys(dispersion.normalize_element(name) for name in species):
        try:
            dispersion.resolve([element], lengths)
        except (ValueError, KeyError) as error:
            given[element] = _pair(element, lengths[0])
            text = f"{element}: f' = {given[element][0]:.2f}, f'' = {given[element][1]:.2f} is used; {str(error)[:200]}"
            notices.append(("dispersion_near_edge", text))
    if given:
        instrument.source.dispersion = rx.Dispersion(overrides=given)
    return replace(state, instrument=instrument)


def _pair(element: str, wavelength: float) -> tuple[float, float]:
    """Return f', f'' at the first line, or none where an edge is too near for the table."""
    try:
        real, imaginary = dispersion.dispersion(element, wavelength)
    except (ValueError, KeyError):
        return 0.0, 0.0
    return float(real), float(imaginary)


def _seeded(
    state: State, description: dict[str, Any], settings: dict[str, Any], neutron: bool, notices: list[tuple[str, str]]
) -> State:
    mask = state.used()
    x, y, sigma = state.x[mask], state.y[mask], state.sigma[mask]
    terms = int(settings.get("background_terms") or DEFAULT_TERMS)
    if not 1 <= terms <= 36:
        raise Refused("input", "setting_invalid", "background_terms must be between 1 and 36.")
    coefficients = seed_background(x, y, sigma, terms)
    curve = chebyshev_rows(x, terms, float(x[0]), float(x[-1])).T @ coefficients
    instrument = state.instrument.model_copy(deep=True)
    instrument.background = background_model(coefficients)
    lines = [(line.wavelength.value, line.weight.value) for line in instrument.source.lines]
    width = peak_width(x, y, sigma, curve, lines)
    if width is None:
        width = FALLBACK_WIDTH_STEPS * float(np.median(np.diff(x)))
        notices.append(("no_peaks", "No clear peak was found to read a width from."))
    structure = state.structure.model_copy(deep=True)
    if description["profile"] is None:
        _seed_width(instrument, structure, width, neutron, settings.get("size_seed"))
        notices.append(("profile_seeded", f"Peak widths start from the data's typical width of {width:.4f} deg."))
    elif settings.get("size_seed"):
        _seed_size(structure, width, settings["size_seed"])
    state = state.with_models(structure, instrument)
    return state.with_models(seed_scales(state, width), instrument)


def _seed_width(instrument: Any, structure: Any, width: float, neutron: bool, size_seed: Any) -> None:
    """Give the whole width to the instrument, or its Lorentzian part to the phases where asked."""
    if neutron:
        instrument.profile.w.value, instrument.profile.x.value = width**2, 0.0
        return
    instrument.profile.w.value = (SHARE * width) ** 2
    instrument.profile.x.value = 0.0 if size_seed else SHARE * width
    if size_seed:
        _seed_size(structure, width, size_seed)


def _seed_size(structure: Any, width: float, size_seed: Any) -> None:
    for phase in structure.phases:
        phase.lor_size.value = SHARE * width if size_seed in (True, "auto") else float(size_seed)


def held_origin(state: State) -> State:
    """Fix the origin of phases in polar groups; the presets of rietx do not."""
    ref = restored(state.structure, state.instrument, mode="rietveld", limits=state.limits, reflections=[])
    ref.hold_floating_origin()
    return state.with_models(ref.structure, state.instrument)
