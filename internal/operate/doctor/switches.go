package doctor

import (
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// switches says whether labs on this machine can have switches. To drive switches elsewhere nothing is needed.
func switches(m Machine) []Finding {
	out, err := m.Run("ovs-vswitchd", "--version")
	if err != nil {
		return []Finding{{"lab", "Open vSwitch", Note, "not installed",
			"labs can have no switches (kind: switch, make demo NET=openflow); nothing else needs it here",
			"apt-get install --no-install-recommends " + ovs.Package + ", or scripts/packages.sh demo, which starts no service"}}
	}
	version, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return []Finding{{Area: "lab", Name: "Open vSwitch", State: Good, Found: version}}
}
