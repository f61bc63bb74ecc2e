"""Which single cause do the measured features name, and which others would do as well?

A release gain is the chi2 that a cause would take away, to first order. It is a likelihood ratio (Rao 1948,
doi:10.1017/S0305004100023987), so that causes of unlike kind compare on one scale: the strongest names the cause, and
those that fall short of it by less than what noise can do cannot be told from it. First order fails where lines are not
in place: then their offsets, which are measured after moving the model onto the data, speak for positions as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from autoxrd.domain.state import Feature
from autoxrd.science.settings import ShareSettings
from autoxrd.science.visible import absent_phases

__all__ = ["Cause", "DiagnosisSettings", "rank_causes"]

CAUSES: tuple[tuple[str, str], ...] = (
    ("instrument.zero", "zero"),
    ("sample.displacement", "displacement"),
    ("sample.offset", "displacement"),
    ("sample.transparency", "transparency"),
    ("instrument.wavelength", "line_split"),
    ("instrument.ka2_ratio", "ka2_ratio"),
    ("phase.*.cell", "cell"),
    ("profile.[UVW]", "width_gauss"),
    ("phase.*.size_gauss", "width_gauss"),
    ("phase.*.strain_gauss", "width_gauss"),
    ("profile.X", "size"),
    ("phase.*.size", "size"),
    ("profile.Y", "strain"),
    ("phase.*.strain", "strain"),
    ("profile.SH/L", "asymmetry"),
    ("phase.*.preferred_orientation", "texture"),
    ("phase.*.uiso", "uiso"),
    ("phase.*.atom.*.uiso", "uiso"),
    ("phase.*.atom.*.occupancy", "occupancy"),
    ("phase.*.atom.*.position", "coordinates"),
    ("phase.*.extinction", "extinction"),
    ("background", "background"),
    ("background.more", "background"),
    ("phase.*.scale", "scale"),
)
"""Selector -> cause. ``instrument.wavelength`` moves the first emission line alone; a beam whose whole spectrum is off
is the same as a cell that is."""


@dataclass(frozen=True, slots=True)
class DiagnosisSettings:
    """Numbers of judgement.

    Args:
        detect_z: below it nothing is named. Some thirty features are looked at; 4 sigma of each is 0.2 % in all.
        rival_chi2: a cause whose chi2 is within this of the best one's cannot be told from it (3 sigma).
        extra_price: chi2 taken off for each parameter beyond the first: at 4 sigma the quantile of chi2 on n degrees
            rises by that much per degree.
        texture_price: chi2 taken off for the axes and strengths tried, 2 ln(24).
        linear_fwhm: rms offset in FWHM beyond which a derivative of the pattern says little: the residual of a line
            that is off by so much is a tenth beyond what the derivative gives.
        linear_share: share of the chi2 beyond noise that a release must take away to be believed all the same.
        absent_share: share of the calculated intensity that stands where nothing is observed, from which a phase of the
            model is wrong.
        shares: when nothing is seen of a phase.
    """

    detect_z: float = 4.0
    rival_chi2: float = 9.0
    extra_price: float = 2.4
    texture_price: float = 6.4
    linear_fwhm: float = 0.15
    linear_share: float = 0.95
    absent_share: float = 0.05
    shares: ShareSettings = field(default_factory=ShareSettings)


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause with what speaks for it.

    Args:
        name: of ``CAUSES``, or ``missing_phase``, ``wrong_phase``.
        feature: name of the feature that speaks for it.
        chi2: that it would take away, in units of the noise.
        significance: the same as a normal deviate, its number of parameters allowed for.
        rival: True where it is named only because the data cannot tell it from the first.
    """

    name: str
    feature: str
    chi2: float
    significance: float
    rival: bool = False


def rank_causes(features: Mapping[str, Feature], settings: DiagnosisSettings | None = None) -> tuple[Cause, ...]:
    """Return the cause that the features name, then those that cannot be told from it; empty where none is significant.

    Args:
        features: of one state, scale factors and background fitted.
        settings: numbers of judgement.
    """
    chosen = settings or DiagnosisSettings()
    found = _best_of_each(_candidates(features, chosen))
    ranked = sorted((c for c in found if c.significance >= chosen.detect_z), key=lambda c: -c.significance)
    if not ranked:
        return ()
    best = ranked[0]
    rivals = [
        Cause(c.name, c.feature, c.chi2, c.significance, rival=True)
        for c in ranked[1:]
        if c.significance**2 > best.significance**2 - chosen.rival_chi2
    ]
    return (best, *rivals)


def _candidates(features: Mapping[str, Feature], settings: DiagnosisSettings) -> Iterator[Cause]:
    yield from _phases(features, settings)
    yield from _textures(features)
    gains = list(_gains(features, settings))
    offsets = [c for c in _positions(features) if c.significance >= settings.detect_z]
    if offsets and _significant(features.get("position.rms"), settings.linear_fwhm, settings.detect_z):
        yield from offsets
        # a derivative that explains all there is was no extrapolation
        least = settings.linear_share * _excess(features)
        gains = [c for c in gains if c.chi2 >= least]
    yield from gains


def _significant(feature: Feature | None, least: float, z: float) -> bool:
    if feature is None or not feature.available or feature.value is None:
        return False
    return abs(feature.value) >= least and (feature.significance or 0.0) >= z


def _positions(features: Mapping[str, Feature]) -> Iterator[Cause]:
    """Yield what each cause alone explains of the lines' offsets."""
    for name in ("zero", "displacement", "cell"):
        key = f"position.alone.{name}"
        feature = features.get(key)
        if feature is not None and feature.available and feature.significance is not None:
            yield Cause(name, key, feature.significance**2, feature.significance)


def _gains(features: Mapping[str, Feature], settings: DiagnosisSettings) -> Iterator[Cause]:
    """Yield what each release would take away, over what the best of them leaves."""
    chi2, gof = _value(features, "chi2"), _value(features, "gof")
    gains = {
        key: f for key, f in features.items() if key.startswith("release_gain.") and f.available and "@" not in key
    }
    if chi2 <= 0 or gof <= 0 or not gains:
        return
    left = 1.0 - max(f.value or 0.0 for f in gains.values())
    scale = max(1.0, left * gof * gof)
    for key, feature in gains.items():
        cause = _cause_of(key.removeprefix("release_gain."))
        if cause is None:
            continue
        drop = (feature.value or 0.0) * chi2 / scale - (settings.texture_price if cause == "texture" else 0.0)
        paid = drop - settings.extra_price * ((feature.n_used or 1) - 1)
        yield Cause(cause, key, drop, math.sqrt(max(paid, 0.0)))


def _textures(features: Mapping[str, Feature]) -> Iterator[Cause]:
    """Yield the textures seen in the intensities: all strengths are tried there, the engine tries a few."""
    for key, feature in features.items():
        if key.startswith("intensity.texture.") and feature.significance is not None:
            yield Cause("texture", key, feature.significance**2, feature.significance)


def _excess(features: Mapping[str, Feature]) -> float:
    """Return chi2 beyond what noise alone gives, over the noise that the best release leaves (as `_gains` counts)."""
    chi2, gof = _value(features, "chi2"), _value(features, "gof")
    best = max((f.value or 0.0 for k, f in features.items() if k.startswith("release_gain.")), default=0.0)
    return (chi2 - chi2 / gof**2) / max(1.0, (1.0 - best) * gof * gof) if gof > 0 else 0.0


def _phases(features: Mapping[str, Feature], settings: DiagnosisSettings) -> Iterator[Cause]:
    """Yield a phase that is missing, or one that is wrong: its own lines are not there, or nothing of it is."""
    feature = features.get("unexplained_peak_ratio")
    if feature is None or not feature.available or feature.significance is None:
        return
    wrong = _value(features, "missing_peak_ratio") > settings.absent_share
    wrong = wrong or bool(absent_phases(features, settings.shares))
    name = "wrong_phase" if wrong else "missing_phase"
    yield Cause(name, "unexplained_peak_ratio", feature.significance**2, feature.significance)


def _best_of_each(candidates: Iterator[Cause]) -> list[Cause]:
    best: dict[str, Cause] = {}
    for cause in candidates:
        if cause.name not in best or cause.significance > best[cause.name].significance:
            best[cause.name] = cause
    return list(best.values())


def _value(features: Mapping[str, Feature], name: str) -> float:
    feature = features.get(name)
    return 0.0 if feature is None or feature.value is None else feature.value


def _cause_of(selector: str) -> str | None:
    return next((cause for pattern, cause in CAUSES if fnmatchcase(selector, pattern)), None)
