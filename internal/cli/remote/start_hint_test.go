package remote

import (
	"slices"
	"testing"
)

// TestAnInstalledDaemonThatIsDownIsNamedWithItsUnit: by the line that starts it; where nothing is installed, or a lab is
// meant, no unit is.
func TestAnInstalledDaemonThatIsDownIsNamedWithItsUnit(t *testing.T) {
	const host, controller = "/etc/scaffold/hostd.yaml", "/etc/scaffold/controld.yaml"
	units := []string{"/lib/systemd/system/scaffold-hostd.service", "/lib/systemd/system/scaffold-controld.service"} // a package has both
	for name, c := range map[string]struct {
		files     []string
		lab, asks string
		want      string
	}{
		"a host":                         {append(units, host), "", "hostd.sock", "`systemctl start scaffold-hostd`"},
		"a host, about the network":      {append(units, host), "", "controld.sock", "`systemctl start scaffold-hostd`"},
		"a controller":                   {append(units, controller), "", "controld.sock", "`systemctl start scaffold-controld`"},
		"a controller, about its flows":  {append(units, controller), "", "hostd.sock", ""},
		"both, about the network":        {append(units, host, controller), "", "controld.sock", "`systemctl start scaffold-controld`"},
		"both, about its flows":          {append(units, host, controller), "", "hostd.sock", "`systemctl start scaffold-hostd`"},
		"without a package":              {[]string{"/etc/systemd/system/scaffold-controld.service", controller}, "", "controld.sock", "`systemctl start scaffold-controld`"},
		"a configuration without a unit": {[]string{controller}, "", "controld.sock", ""},
		"the package alone":              {units, "", "controld.sock", ""},
		"a lab":                          {append(units, host, controller), "one", "controld.sock", ""},
	} {
		there := func(path string) bool { return slices.Contains(c.files, path) }
		if got := startInstalled(there, c.lab, c.asks); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
