"""The works that a methods text may cite; keys are used by :mod:`autoxrd.report.methods`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CITATIONS", "Citation"]


@dataclass(frozen=True, slots=True)
class Citation:
    """One reference: short form for the text, full form and DOI for the list."""

    short: str
    full: str
    doi: str = ""


CITATIONS: dict[str, Citation] = {
    "rietveld": Citation(
        "Rietveld, 1969",
        "Rietveld, H. M. (1969). A profile refinement method for nuclear and magnetic structures. "
        "J. Appl. Cryst. 2, 65–71.",
        "10.1107/S0021889869006558",
    ),
    "tch": Citation(
        "Thompson et al., 1987",
        "Thompson, P., Cox, D. E. & Hastings, J. B. (1987). Rietveld refinement of Debye–Scherrer synchrotron "
        "X-ray data from Al₂O₃. J. Appl. Cryst. 20, 79–83.",
        "10.1107/S0021889887087090",
    ),
    "caglioti": Citation(
        "Caglioti et al., 1958",
        "Caglioti, G., Paoletti, A. & Ricci, F. P. (1958). Choice of collimators for a crystal spectrometer for "
        "neutron diffraction. Nucl. Instrum. 3, 223–228.",
        "10.1016/0369-643X(58)90029-X",
    ),
    "fcj": Citation(
        "Finger et al., 1994",
        "Finger, L. W., Cox, D. E. & Jephcoat, A. P. (1994). A correction for powder diffraction peak asymmetry due "
        "to axial divergence. J. Appl. Cryst. 27, 892–900.",
        "10.1107/S0021889894004218",
    ),
    "hill_howard": Citation(
        "Hill & Howard, 1987",
        "Hill, R. J. & Howard, C. J. (1987). Quantitative phase analysis from neutron powder diffraction data using "
        "the Rietveld method. J. Appl. Cryst. 20, 467–474.",
        "10.1107/S0021889887086199",
    ),
    "internal_standard": Citation(
        "De La Torre et al., 2001",
        "De La Torre, A. G., Bruque, S. & Aranda, M. A. G. (2001). Rietveld quantitative amorphous content analysis. "
        "J. Appl. Cryst. 34, 196–202.",
        "10.1107/S0021889801002485",
    ),
    "external_standard": Citation(
        "O'Connor & Raven, 1988",
        "O'Connor, B. H. & Raven, M. D. (1988). Application of the Rietveld refinement procedure in assaying powdered "
        "mixtures. Powder Diffr. 3, 2–6.",
        "10.1017/S0885715600013026",
    ),
    "mccusker": Citation(
        "McCusker et al., 1999",
        "McCusker, L. B., Von Dreele, R. B., Cox, D. E., Louër, D. & Scardi, P. (1999). Rietveld refinement "
        "guidelines. J. Appl. Cryst. 32, 36–50.",
        "10.1107/S0021889898009856",
    ),
    "toby": Citation(
        "Toby, 2006",
        "Toby, B. H. (2006). R factors in Rietveld analysis: how good is good enough? Powder Diffr. 21, 67–70.",
        "10.1154/1.2179804",
    ),
    "berar": Citation(
        "Bérar & Lelann, 1991",
        "Bérar, J.-F. & Lelann, P. (1991). E.s.d.'s and estimated probable error obtained in Rietveld refinements "
        "with local correlations. J. Appl. Cryst. 24, 1–5.",
        "10.1107/S0021889890008391",
    ),
    "march_dollase": Citation(
        "Dollase, 1986",
        "Dollase, W. A. (1986). Correction of intensities for preferred orientation in powder diffractometry: "
        "application of the March model. J. Appl. Cryst. 19, 267–272.",
        "10.1107/S0021889886089458",
    ),
    "le_bail": Citation(
        "Le Bail et al., 1988",
        "Le Bail, A., Duroy, H. & Fourquet, J. L. (1988). Ab-initio structure determination of LiSbWO₆ by X-ray "
        "powder diffraction. Mater. Res. Bull. 23, 447–452.",
        "10.1016/0025-5408(88)90019-0",
    ),
    "pawley": Citation(
        "Pawley, 1981",
        "Pawley, G. S. (1981). Unit-cell refinement from powder diffraction scans. J. Appl. Cryst. 14, 357–361.",
        "10.1107/S0021889881009618",
    ),
    "de_wolff": Citation(
        "de Wolff, 1968",
        "de Wolff, P. M. (1968). A simplified criterion for the reliability of a powder pattern indexing. "
        "J. Appl. Cryst. 1, 108–113.",
        "10.1107/S002188986800508X",
    ),
    "hoelzer": Citation(
        "Hölzer et al., 1997",
        "Hölzer, G., Fritsch, M., Deutsch, M., Härtwig, J. & Förster, E. (1997). Kα₁,₂ and Kβ₁,₃ X-ray emission "
        "lines of the 3d transition metals. Phys. Rev. A 56, 4554–4568.",
        "10.1103/PhysRevA.56.4554",
    ),
    "arpls": Citation(
        "Baek et al., 2015",
        "Baek, S.-J., Park, A., Ahn, Y.-J. & Choo, J. (2015). Baseline correction using asymmetrically reweighted "
        "penalized least squares smoothing. Analyst 140, 250–257.",
        "10.1039/C4AN01061B",
    ),
    "rietx": Citation("rietx", "rietx, an open Rietveld refinement engine (Python package)."),
    "gsasii": Citation(
        "Toby & Von Dreele, 2013",
        "Toby, B. H. & Von Dreele, R. B. (2013). GSAS-II: the genesis of a modern open-source all purpose "
        "crystallography software package. J. Appl. Cryst. 46, 544–549.",
        "10.1107/S0021889813003531",
    ),
    "fullprof": Citation(
        "Rodríguez-Carvajal, 1993",
        "Rodríguez-Carvajal, J. (1993). Recent advances in magnetic structure determination by neutron powder "
        "diffraction. Physica B 192, 55–69.",
        "10.1016/0921-4526(93)90108-I",
    ),
    "gemmi": Citation(
        "Wojdyr, 2022",
        "Wojdyr, M. (2022). GEMMI: a library for structural biology. J. Open Source Softw. 7, 4200.",
        "10.21105/joss.04200",
    ),
}
