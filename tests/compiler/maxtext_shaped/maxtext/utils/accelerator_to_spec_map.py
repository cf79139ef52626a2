"""Names of slices."""

from types import SimpleNamespace

UserFacingNameToSystemCharacteristics = {"v5e-4": SimpleNamespace(topology_name="v5e:2x2")}
TOPOLOGIES = {name: found.topology_name for name, found in UserFacingNameToSystemCharacteristics.items()}
