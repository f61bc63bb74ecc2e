"""The ``prepare`` command: from checked input to the first state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from axg_axial import AXIAL_FLOOR
from axg_build import DEFAULT_RADIUS_MM, build_phase, start_values
from axg_model import build_model
from axg_pattern import NARROW, Engine
from axg_quantities import FLIGHT_POSITION, FLIGHT_SHAPE
from axg_state import PhaseModel, State
from axr_certified import known_cells
from axr_curves import chebyshev_rows, match_factors, peak_width, seed_background
from axr_wire import Refused

__all__ = ["MOST_TERMS", "prepare"]

DEFAULT_TERMS = 8
MOST_TERMS = 36
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

Notices = list[tuple[str, str]]


def prepare(request: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
    """Return the first state.

    Args:
        request: ``instrument``, ``structures``, ``settings`` and ``axis``, our JSON.
        arrays: ``x``, ``y``, ``sigma``, shape (n,).

    Raises:
        Refused: the input cannot be refined by this engine.
    """
    settings = _checked_settings(request["settings"])
    flight = request["instrument"].get("flight")
    if request["axis"] != ("two_theta_deg" if flight is None else "tof_us"):
        text = f"This backend refines against 2theta, or times of flight with a calibration, not {request['axis']}."
        raise Refused("input", "axis_unsupported", text)
    if not request["structures"]:
        raise Refused("input", "no_phase", "There is no phase to refine.")
    notices: Notices = []
    given = request["instrument"]
    neutron = given["radiation"] == "neutron"
    factors = settings.get("form_factors", "neutral")
    phases = [
        build_phase(item, form_factors=factors, neutron=neutron, notices=notices) for item in request["structures"]
    ]
    x, y, sigma = _checked_pattern(arrays)
    state = _empty(given, phases, (x, y, sigma), settings, notices)
    state = replace(state, known_cells=known_cells(settings, [phase.name for phase in phases]))
    if int(state.used().sum()) < MINIMUM_POINTS:
        raise Refused("input", "range_empty", f"Fewer than {MINIMUM_POINTS} points remain in the range.")
    if not np.any(state.y[state.used()] > 0.0):
        # GSAS-II would put a simulation with noise in place of the data
        raise Refused("input", "pattern_empty", "No point of the range has any intensity.")
    try:
        state = _seeded(state, given, settings, notices)
    except Refused as error:
        raise Refused("input", error.code, error.detail) from error
    return replace(state, notices=tuple(dict.fromkeys(notices)))


def _checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(settings) - set(SETTINGS))
    if unknown:
        raise Refused("input", "setting_unknown", f"Unknown engine settings {unknown}; known are {list(SETTINGS)}.")
    if settings.get("form_factors", "neutral") not in ("neutral", "as_given"):
        raise Refused("input", "setting_invalid", "form_factors is 'neutral' or 'as_given'.")
    if settings.get("dispersion", "auto") != "auto":
        raise Refused("input", "setting_invalid", "GSAS-II always applies f' and f'': dispersion is 'auto'.")
    return settings


def _checked_pattern(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays; what GSAS-II's readers let pass (NaN, infinities, shuffled angles, no esd) is refused."""
    x, y, sigma = (np.asarray(arrays[name], dtype=np.float64) for name in ("x", "y", "sigma"))
    sound = x.shape == y.shape == sigma.shape and x.ndim == 1 and x.size > 1
    if not (sound and np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.all(np.isfinite(sigma))):
        raise Refused("input", "pattern_invalid", "The pattern's arrays differ in length or are not finite.")
    if np.any(np.diff(x) <= 0.0) or np.any(sigma <= 0.0):
        raise Refused(
            "input", "pattern_invalid", "The abscissa must rise from point to point and every esd be positive."
        )
    return x, y, sigma


def _empty(
    given: dict[str, Any],
    phases: list[PhaseModel],
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: dict[str, Any],
    notices: Notices,
) -> State:
    """Return the state before anything was read from the data."""
    lines = given["lines"]
    if given.get("flight") is not None:
        return _flight(given, phases, arrays, settings, notices)
    if not lines or any(line["wavelength_angstrom"] <= 0 for line in lines):
        raise Refused("input", "wavelength_missing", "The instrument has no wavelength.")
    neutron, geometry = given["radiation"] == "neutron", given["geometry"]
    if len(lines) > (1 if neutron else 2):
        notices.append(("lines_ignored", "Only the first wavelengths are used: GSAS-II takes two of X-rays, one else."))
    radius = given["goniometer_radius_mm"]
    if radius is None:
        radius = DEFAULT_RADIUS_MM[geometry]
        text = f"The goniometer radius is not known; {radius:g} mm is assumed. "
        notices.append(("goniometer_radius_assumed", text + "A specimen displacement in mm scales with it."))
    first = float(lines[0]["wavelength_angstrom"])
    two = not neutron and len(lines) > 1
    return State(
        radiation=given["radiation"],
        geometry=geometry,
        radius_mm=float(radius),
        second_line=float(lines[1]["wavelength_angstrom"]) / first if two else None,
        polarization=float(given["polarization"]),
        phases=tuple(phases),
        values=_start(given, phases, first, two),
        background=("chebyschev-1", 1),
        x=arrays[0],
        y=arrays[1],
        sigma=arrays[2],
        limits=_limits(settings),
        excluded=tuple((float(a), float(b)) for a, b in settings.get("excluded_regions") or ()),
    )


def _limits(settings: dict[str, Any]) -> tuple[float, float] | None:
    limits = settings.get("two_theta_limits")
    if limits is not None and not float(limits[0]) < float(limits[1]):
        raise Refused("input", "range_reversed", "two_theta_limits must be (lower, upper).")
    return None if limits is None else (float(limits[0]), float(limits[1]))


def _flight(
    given: dict[str, Any],
    phases: list[PhaseModel],
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: dict[str, Any],
    notices: Notices,
) -> State:
    """Return the state over the time of flight before anything was read from the data."""
    if not settings.get("known_cells"):
        text = "Cell lengths go with DIFC, which the instrument file gives: its error is no part of their esds."
        notices.append(("cell_follows_difc", text))
    bank = given["flight"]
    values = {"background.0": 0.0, "instrument.zero": float(bank["zero"]), "absorption": 0.0}
    values |= {f"instrument.{key}": float(bank[f"dif_{key[-1].lower()}"]) for key in FLIGHT_POSITION}
    values |= {f"profile.{key}": float(bank[key.lower().replace("-", "_")]) for key in FLIGHT_SHAPE}
    for phase in phases:
        values |= start_values(phase)
    return State(
        radiation=given["radiation"],
        geometry=given["geometry"],
        radius_mm=DEFAULT_RADIUS_MM[given["geometry"]],
        second_line=None,
        polarization=0.5,
        phases=tuple(phases),
        values=values,
        background=("chebyschev-1", 1),
        x=arrays[0],
        y=arrays[1],
        sigma=arrays[2],
        limits=_limits(settings),
        excluded=tuple((float(a), float(b)) for a, b in settings.get("excluded_regions") or ()),
        flight=(float(bank["two_theta_deg"]), float(bank["path_m"])),
    )


def _start(given: dict[str, Any], phases: list[PhaseModel], first: float, two: bool) -> dict[str, float]:
    profile = given["profile"] or {}
    values = {"background.0": 0.0, "instrument.wavelength": first, "instrument.zero": float(given["zero_deg"])}
    if two:
        values["instrument.ka2_ratio"] = float(given["lines"][1]["relative_intensity"])
    values |= {f"profile.{key}": float(profile.get(key.lower(), 0.0)) for key in "UVWXYZ"}
    # GSAS-II has one number for both apertures: their sum
    axial = 0.5 * (profile.get("s_l", 0.0) + profile.get("h_l", 0.0))
    values |= {"profile.S/L": max(axial, AXIAL_FLOOR), "profile.H/L": max(axial, AXIAL_FLOOR)}
    if given["geometry"] == "bragg_brentano":
        values |= {"sample.displacement": 0.0, "sample.transparency": 0.0}
        values |= {"sample.roughness": 0.0} if given["radiation"] == "xray" else {}
    else:
        values |= {"sample.offset_along": 0.0, "sample.offset_across": 0.0, "absorption": 0.0}
    for phase in phases:
        values |= start_values(phase)
    return values


def _seeded(state: State, given: dict[str, Any], settings: dict[str, Any], notices: Notices) -> State:
    mask = state.used()
    x, y, sigma = state.x[mask], state.y[mask], state.sigma[mask]
    terms = int(settings.get("background_terms") or DEFAULT_TERMS)
    if not 1 <= terms <= MOST_TERMS:
        raise Refused("input", "setting_invalid", f"background_terms must be between 1 and {MOST_TERMS}.")
    coefficients = seed_background(x, y, sigma, terms)
    curve = chebyshev_rows(x, terms, float(x[0]), float(x[-1])).T @ coefficients
    values = {f"background.{number}": float(value) for number, value in enumerate(coefficients)}
    lines = [(1.0, 1.0)]
    if state.second_line is not None:
        lines.append((state.second_line, state.values["instrument.ka2_ratio"]))
    width = peak_width(x, y, sigma, curve, lines)
    if width is None:
        width = FALLBACK_WIDTH_STEPS * float(np.median(np.diff(x)))
        notices.append(("no_peaks", "No clear peak was found to read a width from."))
    values |= _seed_width(state, given, settings, width, notices)
    state = replace(state.with_values(values), background=("chebyschev-1", terms))
    # without atoms there is none: the intensities of a profile match stand for it
    return state if state.bare else state.with_values(_seed_scales(state, y - curve, width))


def _seed_width(
    state: State, given: dict[str, Any], settings: dict[str, Any], width: float, notices: Notices
) -> dict[str, float]:
    """Give the whole width to the instrument, or its Lorentzian part to the phases where asked."""
    values: dict[str, float] = {}
    seed = settings.get("size_seed")
    if given["profile"] is None and state.flight is None:
        notices.append(("profile_seeded", f"Peak widths start from the data's typical width of {width:.4f} deg."))
        if state.radiation == "neutron":
            return {"profile.W": width**2}
        values = {"profile.W": (SHARE * width) ** 2, "profile.X": 0.0 if seed else SHARE * width}
    if seed:
        size = SHARE * width if seed in (True, "auto") else float(seed)
        values |= {f"phase.{phase.name}.size": size for phase in state.phases}
    return values


def _seed_scales(state: State, net: np.ndarray, width: float) -> dict[str, float]:
    model = build_model(state)
    found = Engine(model, NARROW).compute(state.values)
    factors = match_factors(model.x, net, model.sigma, list(found.parts), width, float(np.max(model.y)))
    return {f"phase.{phase.name}.scale": factor for phase, factor in zip(state.phases, factors, strict=True)}
