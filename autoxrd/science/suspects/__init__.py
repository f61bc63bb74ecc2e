"""Why may no refinement of these phases be right? Measures of causes that no parameter of the model can mend."""

from autoxrd.science.suspects.find import Suspects, find_suspects
from autoxrd.science.suspects.magnetism import MagneticOrder
from autoxrd.science.suspects.settings import SuspectSettings
from autoxrd.science.suspects.wavelength import OtherWavelength

__all__ = ["MagneticOrder", "OtherWavelength", "SuspectSettings", "Suspects", "find_suspects"]
