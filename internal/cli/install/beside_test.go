package install

import (
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/operate/setup"
)

// A host on a router's machine has that router: other uplinks are refused before anything is changed, whichever of the
// two comes second.
func TestAHostOnARoutersMachineNamesNoUplink(t *testing.T) {
	for _, c := range []struct {
		there, text string
		role        setup.Role
		typed       []string
		refused     bool
	}{
		{there: "routerd", role: setup.Host, typed: []string{"eth0"}, refused: true},
		{there: "routerd", role: setup.Host, typed: []string{"auto"}},
		{there: "routerd", role: setup.Host},
		{there: "hostd", text: "name: s1\nuplink: eth0\n", role: setup.Router, refused: true},
		{there: "hostd", text: "name: s1\nuplink: [auto]\n", role: setup.Router},
		{there: "hostd", text: "name: s1\n", role: setup.Router},
		{there: "hostd", text: "name: s1\nuplink: eth0\n", role: setup.Host, typed: []string{"eth1"}},
		{there: "hostd", text: "name: s1\nuplink: eth0\n", role: setup.Controller},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "etc/scaffold", c.there+".yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := setup.Image(dir)
		if err != nil {
			t.Fatal(err)
		}
		said := c.typed
		if c.role == setup.Router {
			said = HostUplinks([]byte(c.text))
		}
		if err := BesideFits(m, c.role, said); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
