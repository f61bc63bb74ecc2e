"""Where is which parameter of a FullProf control file? A walk by counts from the first line to the last.

In scope: one constant-wavelength powder pattern in the single-pattern layout (COMM), phases by structure (Jbt 0),
without magnetism, modulation, rigid bodies or special strain and size models. All else is refused by name: a wrong
count shifts every later line, so that a walk which guesses is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from autoxrd.io.pcr_text import Lines, numbers_of

__all__ = ["Slot", "Walk", "walk"]

_ZERO = ("zero", "sycos", "sysin", "lambda")
_SCALE = ("scale", "shape1", "bov", "str1", "str2", "str3")
_WIDTHS = ("u", "v", "w", "x", "y", "gausiz", "lorsiz")
_CELL = ("a", "b", "c", "alpha", "beta", "gamma")
_PREF = ("pref1", "pref2", "asy1", "asy2", "asy3", "asy4", "s_l", "d_l")
_ATOM = ("x", "y", "z", "biso", "occ")
_BETA = ("beta11", "beta22", "beta33", "beta12", "beta13", "beta23")
_BACKGROUND = {0: 1, -4: 3, -5: 4}
"""Nba -> pairs of lines (six values, six codes) of a background function."""
_AXIAL = 7
"""Npr with two more parameters of axial divergence."""
_SHAPED = 7
"""Npr above it, and 4, have a line of further shape parameters."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter with its codeword.

    Args:
        name: ``background.1``, ``zero``, ``phase.1.atom.Al.z``, ...
        value, code: as they stand in the file.
        line: of the code.
    """

    name: str
    value: float
    code: float
    line: int


@dataclass
class Walk:
    """What was found on the way."""

    title: str = ""
    slots: list[Slot] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    maxs: int = 0
    header: dict[str, int] = field(default_factory=dict)
    output: dict[str, int] = field(default_factory=dict)
    texts: list[tuple[int, str]] = field(default_factory=list)
    """Lines in which fp2k reads words: pattern lines and phase names."""


_JOB = (
    "Job",
    "Npr",
    "Nph",
    "Nba",
    "Nex",
    "Nsc",
    "Nor",
    "Dum",
    "Iwg",
    "Ilo",
    "Ias",
    "Res",
    "Ste",
    "Nre",
    "Cry",
    "Uni",
    "Cor",
    "Opt",
    "Aut",
)
_IPR = (
    "Ipr",
    "Ppl",
    "Ioc",
    "Mat",
    "Pcr",
    "Ls1",
    "Ls2",
    "Ls3",
    "NLI",
    "Prf",
    "Ins",
    "Rpa",
    "Sym",
    "Hkl",
    "Fou",
    "Sho",
    "Ana",
)
_PHASE = ("Nat", "Dis", "Ang", "Pr1", "Pr2", "Pr3", "Jbt", "Irf", "Isy", "Str", "Furth", "ATZ", "Nvk", "Npr", "More")


def walk(text: str, name: str) -> Walk:
    """Walk a file to its last line.

    Raises:
        PcrRefusal: it is not in form, or has something out of scope; the sentence names the line.
    """
    lines, found = Lines(text, name), Walk()
    first = lines.text("the title")
    if not first.text.lstrip().upper().startswith("COMM"):
        raise lines.refuse("pcr_not_single", "expected COMM: the multi-pattern layout is not checked.")
    found.title = first.text.strip()[4:].strip()[:80]
    _header(lines, found)
    _pattern(lines, found)
    for index in range(1, found.header["Nph"] + 1):
        _phase(lines, found, index)
    _end(lines)
    return found


def _header(lines: Lines, found: Walk) -> None:
    first = lines.text("the control line 'Job Npr Nph ...'")
    if first.text.lstrip().upper().startswith("NPATT"):
        raise lines.refuse("pcr_not_single", "NPATT: the multi-pattern layout is not checked.")
    lines.back()
    job = lines.row("the control line 'Job Npr Nph ...'", 17, 19)
    found.header = dict.fromkeys(_JOB, 0) | {key: int(value) for key, value in zip(_JOB, job, strict=False)}
    head = found.header
    if head["Job"] not in (0, 1):
        raise lines.refuse("pcr_job", f"Job {head['Job']}: only 0 (X-ray) and 1 (neutron) are checked.")
    for key in ("Cry", "Uni", "Res", "Nre", "Nsc"):
        if head[key]:
            raise lines.refuse("pcr_scope", f"{key} = {head[key]} is not checked; expected 0.")
    if not 1 <= head["Nph"] <= 16:
        raise lines.refuse("pcr_count", f"Nph = {head['Nph']}; expected 1 to 16 phases.")
    output = lines.row("the control line 'Ipr Ppl Ioc ...'", 17)
    found.output = {key: int(value) for key, value in zip(_IPR, output, strict=True)}
    if found.output["NLI"]:
        raise lines.refuse("pcr_scope", "NLI: linear restraints name parameter numbers and are not checked.")


def _pattern(lines: Lines, found: Walk) -> None:
    head = found.header
    beam = lines.row("the wavelength line", 9, 10)
    if not 0.05 < beam[0] < 10.0 or beam[2] < 0.0:
        raise lines.refuse("pcr_value", "the first wavelength is not one, or Ratio is negative.")
    reach = lines.row("the cycles and range line", 11)
    if not reach[6] < reach[8]:
        raise lines.refuse("pcr_value", f"the range runs from {reach[6]:g} to {reach[8]:g}.")
    points = head["Nba"]
    if points not in _BACKGROUND and not (points >= 2 or points < -5):
        raise lines.refuse("pcr_scope", f"Nba = {points} is not checked.")
    for number in range(1, abs(points) + 1 if points not in _BACKGROUND else 1):
        _, value, code = lines.row(f"background point {number}", 3)
        found.slots.append(Slot(f"background.{number}", value, code, lines.number))
    for number in range(1, head["Nex"] + 1):
        low, high = lines.row(f"excluded region {number}", 2)
        if not low < high:
            raise lines.refuse("pcr_value", f"excluded region {number} runs from {low:g} to {high:g}.")
    found.maxs = int(lines.row("the number of refined parameters", 1)[0])
    zero = lines.row("the zero line", 9)
    found.slots += [Slot(n, zero[2 * i], zero[2 * i + 1], lines.number) for i, n in enumerate(_ZERO)]
    if zero[8]:
        raise lines.refuse("pcr_scope", "MORE: microabsorption is not checked.")
    for number in range(_BACKGROUND.get(points, 0)):
        names = [f"background.{6 * number + i}" for i in range(1, 7)]
        _pair(lines, found, "background coefficients", names)


def _pair(lines: Lines, found: Walk, what: str, names: list[str], extra: int = 0) -> list[float]:
    """Walk a line of values and the line of their codes; ``extra`` numbers stand behind the values."""
    values = lines.row(what, len(names) + extra)
    codes = lines.row(f"the codes of {what}", len(names))
    found.slots += [Slot(n, v, c, lines.number) for n, v, c in zip(names, values, codes, strict=False)]
    return values


def _phase(lines: Lines, found: Walk, index: int) -> None:
    title = lines.text(f"the name of phase {index}")
    found.texts.append((title.number, title.text))
    found.phases.append(title.text.strip()[:80])
    row = lines.row(f"the control line of phase {index}", 15)
    control = dict(zip(_PHASE, row, strict=True))
    for key, code in (("Jbt", "pcr_jbt"), ("Isy", "pcr_scope"), ("More", "pcr_scope"), ("Str", "pcr_scope")):
        if control[key]:
            raise lines.refuse(code, f"phase {index}: {key} = {control[key]:g} is not checked; expected 0.")
    for key in ("Dis", "Ang", "Furth", "Nvk", "Irf"):
        if control[key]:
            raise lines.refuse("pcr_scope", f"phase {index}: {key} = {control[key]:g} is not checked; expected 0.")
    group = lines.text(f"the space group of phase {index}").text
    if not group.strip()[:1].isalpha():
        raise lines.refuse("pcr_count", f"phase {index}: expected a space group symbol.")
    for number in range(1, int(control["Nat"]) + 1):
        _atom(lines, found, f"phase.{index}.atom", number)
    _profile(lines, found, f"phase.{index}", int(control["Npr"]) or found.header["Npr"])


def _atom(lines: Lines, found: Walk, stem: str, number: int) -> None:
    line = lines.text(f"atom {number}")
    words = line.text.split(maxsplit=2)
    values = numbers_of(words[2]) if len(words) == 3 and words[0][0].isalpha() and words[1][0].isalpha() else []
    if len(values) != 9:
        raise lines.refuse(
            "pcr_count", f"atom {number}: expected label, type and 9 numbers, found {len(values)} numbers."
        )
    codes = lines.row(f"the codes of atom {words[0]}", 5)
    name = f"{stem}.{words[0]}"
    pairs = zip(_ATOM, values, codes, strict=False)
    found.slots += [Slot(f"{name}.{key}", value, code, lines.number) for key, value, code in pairs]
    kind = int(values[7])
    if kind == 2:
        _pair(lines, found, f"the betas of atom {words[0]}", [f"{name}.{key}" for key in _BETA])
    elif kind:
        raise lines.refuse("pcr_scope", f"atom {words[0]}: N_t = {kind} is not checked; expected 0 or 2.")


def _profile(lines: Lines, found: Walk, stem: str, shape: int) -> None:
    scale = _pair(lines, found, "the scale line", [f"{stem}.{n}" for n in _SCALE], extra=1)
    widths = _pair(lines, found, "the width line", [f"{stem}.{n}" for n in _WIDTHS], extra=1)
    if scale[-1] or widths[-1]:
        raise lines.refuse("pcr_scope", f"{stem}: strain and size models are not checked; expected 0.")
    cell = _pair(lines, found, "the cell", [f"{stem}.{n}" for n in _CELL])
    if min(cell[:3]) < 1.0 or not all(20.0 <= angle <= 160.0 for angle in cell[3:]):
        raise lines.refuse("pcr_value", f"{stem}: {cell} is no cell.", lines.number - 1)
    names = _PREF if shape == _AXIAL else _PREF[:6]
    _pair(lines, found, "the texture and asymmetry line", [f"{stem}.{n}" for n in names])
    if shape == 4 or shape > _SHAPED:
        values = lines.row("the further shape parameters", 4)
        found.slots += [Slot(f"{stem}.shape.{i}", values[2 * i], values[2 * i + 1], lines.number) for i in range(2)]


def _end(lines: Lines) -> None:
    """Behind the last phase stands at most the line of what to plot."""
    left = list(lines.rest())
    if len(left) > 1 or (left and len(numbers_of(left[0].text)) not in (2, 3)):
        raise lines.refuse("pcr_count", "this line belongs to nothing: a count before it is wrong.", left[0].number)
