package ovs

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestWithoutOpenVSwitchItIsSaidWhatToDo(t *testing.T) {
	i := Instance{Dir: t.TempDir(), Look: func(program string) (string, error) { return "", &exec.Error{Name: program, Err: exec.ErrNotFound} }}
	var missing *MissingError
	if err := i.Check(); !errors.As(err, &missing) || !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), Package) {
		t.Errorf("check: %v", err)
	}
	for what, prepare := range map[string]func() (*exec.Cmd, error){"create": i.Create, "database": i.Database, "daemon": i.Daemon} {
		if cmd, err := prepare(); cmd != nil || !errors.As(err, &missing) {
			t.Errorf("%s: %v, %v", what, cmd, err)
		}
	}
}

func TestABridgeIsToldInOneTransaction(t *testing.T) {
	i := Instance{Dir: "/d", Look: func(program string) (string, error) { return "/bin/" + program, nil }}
	cmd, err := i.Configure(Config{Offload: true, Bridges: []Bridge{{
		Name: "br0", Description: "r1", DatapathID: 0x025caf000002, Controllers: []string{"tcp:[::1]:6653"},
		Ports: []Port{{Name: "to-r2", Number: 1}, {Name: "t", Number: 2, Type: "vxlan", Options: map[string]string{"remote_ip": "fd00::1", "key": "7"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(cmd.Args, " ")
	for _, want := range []string{
		"--timeout=15 --db=unix:/d/db.sock --no-wait init", "userspace-tso-enable=true", "fail_mode=secure", "other-config:datapath-id=0000025caf000002",
		`target="tcp:[::1]:6653"`, "controller=[@controller0_0]", `set Interface to-r2 type="" ofport_request=1`,
		`set Interface t type="vxlan" ofport_request=2 options:key="7" options:remote_ip="fd00::1"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
