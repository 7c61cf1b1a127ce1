package setup

import (
	"slices"
	"strings"
	"testing"
)

// TestWhoRuledByTheFormerGroupIsNamed once: where the controller is installed again over a version whose socket was for
// the group scaffold.
func TestWhoRuledByTheFormerGroupIsNamed(t *testing.T) {
	former := map[string]string{"/etc/group": "root:x:0:\nscaffold:x:990:alice,bob\nscaffold-old:x:991:carol\n",
		"/etc/tmpfiles.d/scaffold.conf": "d /run/scaffold/controld 2750 scaffold scaffold\n"}
	named := func(m *Machine, r Role) string {
		t.Helper()
		p := &Plan{Role: r}
		p.tellRulers(m)
		return strings.Join(p.Notes, "\n")
	}
	for name, c := range map[string]struct {
		role Role
		conf string
		want bool
	}{
		"a controller of before":         {Controller, former["/etc/tmpfiles.d/scaffold.conf"], true},
		"a host":                         {Host, former["/etc/tmpfiles.d/scaffold.conf"], false},
		"one of this version":            {Controller, string(text("tmpfiles.conf", "")), false},
		"a machine without a controller": {Controller, "", false},
	} {
		files := map[string]string{"/etc/group": former["/etc/group"]}
		if c.conf != "" {
			files["/etc/tmpfiles.d/scaffold.conf"] = c.conf
		}
		got := named(image(t, files), c.role)
		if tells := strings.Contains(got, "alice, bob") && strings.Contains(got, "adduser NAME scaffold-admin"); tells != c.want || strings.Contains(got, "carol") {
			t.Errorf("%s: %q; named: %v", name, got, c.want)
		}
	}
	if got := image(t, former).members("nobody-has-it"); !slices.Equal(got, nil) {
		t.Errorf("members of no group: %q", got)
	}
}
