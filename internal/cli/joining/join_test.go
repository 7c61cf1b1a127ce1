package joining

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/install"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/router/routerd"
	"scaffold.dev/scaffold/internal/trust"
)

// joined writes into an image what `join` writes on a machine, after the token was redeemed.
func joined(t *testing.T, image string, role setup.Role) string {
	t.Helper()
	j := &joining{config: filepath.Join(image, role.Config()), service: role == setup.Router}
	j.name, j.addresses = "m1", []string{"192.0.2.1:23728"}
	if j.token.Role, j.state = trust.Host, hostd.DefaultStateDir; role == setup.Router {
		j.token.Role, j.state = trust.Router, routerd.DefaultCredentials
	}
	if role == setup.Host {
		j.uplinks = []string{"eth0"}
	}
	if err := j.configure(); err != nil {
		t.Fatal(err)
	}
	return j.config
}

func installInto(t *testing.T, image string, args ...string) {
	t.Helper()
	cmd := install.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(args, "--root", image))
	if err := cmd.Execute(); err != nil {
		t.Fatalf("install %v: %v\n%s", args, err, out.String())
	}
}

// TestAUnitStartsWithWhatJoinWrote: whether `join` or `install` came first, the unit's file is that of `join`, in
// words that the daemon takes, and its credentials are where the unit lets the daemon write.
func TestAUnitStartsWithWhatJoinWrote(t *testing.T) {
	flags := map[setup.Role][]string{
		setup.Host:   {"host", "--name", "m1", "--uplink", "eth0"},
		setup.Router: {"router", "--name", "m1", "--controller", "http://192.0.2.1:23728"},
	}
	for role, typed := range flags {
		for _, order := range []string{"join, install", "install, join"} {
			image := t.TempDir()
			if order == "install, join" {
				installInto(t, image, typed...)
			}
			file := joined(t, image, role)
			wrote, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			installInto(t, image, string(role)) // has the daemon check the file
			if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, wrote) {
				t.Errorf("%s, %s: the file of join is now %q, %v", role, order, now, err)
			}
			unit, err := os.ReadFile(filepath.Join(image, "/etc/systemd/system", role.Unit()))
			if err != nil {
				t.Fatal(err)
			}
			state := "/var/lib/scaffold/" + role.Daemon()
			for _, want := range []string{"--config " + role.Config(), "ConditionPathExists=" + role.Config(), "StateDirectory=scaffold/" + role.Daemon()} {
				if !strings.Contains(string(unit), want) {
					t.Errorf("%s: its unit has no %s", role, want)
				}
			}
			if !strings.Contains(string(wrote), `"`+state+`"`) {
				t.Errorf("%s: credentials are not in %s:\n%s", role, state, wrote)
			}
		}
	}
}

// What join writes for an agent of boost its daemon takes, and what cannot be right is told before the token is used.
func TestAnAgentStartsWithWhatJoinWrote(t *testing.T) {
	dir := t.TempDir()
	j := &joining{config: filepath.Join(dir, "boostd.yaml"), state: filepath.Join(dir, "state"), doors: []string{"[2001:db8::1]:99", "192.0.2.7"}, ports: []string{"lo"}}
	j.name, j.addresses, j.token.Role = "east-1", []string{"192.0.2.1:23728"}, trust.Agent
	if err := j.fill(); err != nil {
		t.Fatal(err)
	}
	if err := j.configure(); err != nil {
		t.Fatal(err)
	}
	s, err := boostd.Read(j.config)
	if err != nil || s.Name != "east-1" || s.Door.String() != j.doors[0] || len(s.Paths) != 1 || s.Paths[0].At.String() != "192.0.2.7:23731" || s.Credentials != j.state || len(s.Controllers) != 1 || s.Controllers[0] != "https://192.0.2.1:23728" {
		t.Errorf("%+v, %v", s, err)
	}
	for says, change := range map[string]func(*joining){
		"--door where other agents": func(j *joining) { j.doors = nil },
		"with --port by which":      func(j *joining) { j.ports = nil },
		"expected an address":       func(j *joining) { j.doors = []string{"192.0.2.7", "here"} },
		"interface nosuch":          func(j *joining) { j.ports = []string{"nosuch"} },
		"the service reads":         func(j *joining) { j.install = true },
		"are of hosts and routers":  func(j *joining) { j.service = true },
	} {
		wrong := *j
		change(&wrong)
		if err := wrong.fill(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want that it says %q", err, says)
		}
	}
}

// machine has systemctl do nothing but note what it is to run, on a machine with the agent's service.
func machine(t *testing.T, runs bool) (ran *[]string) {
	ran = new([]string)
	realRun, realSystemd := systemctl, bySystemd
	t.Cleanup(func() { systemctl, bySystemd = realRun, realSystemd })
	bySystemd = func() bool { return true }
	systemctl = func(_ context.Context, args ...string) error {
		switch args[0] {
		case "cat":
		case "is-active":
			if !runs {
				return errors.New("inactive")
			}
		default:
			*ran = append(*ran, strings.Join(args, " "))
		}
		return nil
	}
	return ran
}

// TestAnAgentThatRunsIsNotRestartedUnasked: a restart resets what it carries, and it is a host's and a router's that does not.
func TestAnAgentThatRunsIsNotRestartedUnasked(t *testing.T) {
	for what, c := range map[string]struct {
		role              trust.Role
		runs              bool
		redeemed, restart bool
		says, did         string
	}{
		"begins":             {role: trust.Agent, redeemed: true, says: "scaffold-boostd.service runs", did: "restart scaffold-boostd.service"},
		"again, unchanged":   {role: trust.Agent, runs: true, says: "is left alone: nothing has changed", did: ""},
		"other credentials":  {role: trust.Agent, runs: true, redeemed: true, says: "connections that it carries go on", did: "kill --kill-who=main --signal=USR2 scaffold-boostd.service"},
		"asked":              {role: trust.Agent, runs: true, restart: true, says: "connections that it carries are reset; scaffold-boostd.service runs", did: "restart scaffold-boostd.service"},
		"a host, as before":  {role: trust.Host, runs: true, says: "scaffold-hostd.service runs", did: "restart scaffold-hostd.service"},
		"a router, likewise": {role: trust.Router, runs: true, redeemed: true, says: "scaffold-routerd.service runs", did: "restart scaffold-routerd.service"},
	} {
		ran := machine(t, c.runs)
		j := &joining{redeemed: c.redeemed, restart: c.restart}
		j.token.Role = c.role
		j.config = j.role().Config()
		var said []string
		if err := j.begin(t.Context(), func(line string) { said = append(said, line) }); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		want := "enable " + j.role().Unit()
		if c.did != "" {
			want += "; " + c.did
		}
		if got := strings.Join(*ran, "; "); got != want || !strings.Contains(strings.Join(said, "; "), c.says) {
			t.Errorf("%s: ran %q, want %q; said %q, want %q", what, got, want, said, c.says)
		}
	}
}

// TestAnotherFileOfAnAgentThatRunsIsRefused before anything is done, with the way to it.
func TestAnotherFileOfAnAgentThatRunsIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		runs, elsewhere, restart bool
		refused                  bool
	}{
		"it runs": {runs: true, refused: true}, "asked": {runs: true, restart: true},
		"it does not run": {}, "another file than the service's": {runs: true, elsewhere: true},
	} {
		ran := machine(t, c.runs)
		j := &joining{restart: c.restart, config: setup.Agent.Config(), doors: []string{"192.0.2.1"}, ports: []string{"lo"}} // which is not there
		if j.name, j.token.Role = "east-1", trust.Agent; c.elsewhere {
			j.config = filepath.Join(t.TempDir(), "boostd.yaml")
		}
		err := j.leavesAgent(t.Context())
		if (err != nil) != c.refused || len(*ran) > 0 {
			t.Errorf("%s: %v; ran %q", what, err, *ran)
		}
		var known *exit.Error
		if c.refused && (!errors.As(err, &known) || known.Code != exit.Refused || !strings.Contains(known.Hint, "boost agent drain east-1") || !strings.Contains(known.Hint, "--restart")) {
			t.Errorf("%s: %v, hint %q", what, err, known.Hint)
		}
	}
	j := &joining{restart: true}
	j.name, j.token.Role = "m1", trust.Host
	if err := j.fill(); err == nil || !strings.Contains(err.Error(), "--restart is of agents") {
		t.Errorf("of a host: %v", err)
	}
}

// A file that is not changed line by line is left as it is where join says nothing else, and refused where it does: before the
// token is used, and with what to do. So is one that the daemon would not take.
func TestAnAgentsFileOfSeveralLinesIsNotReplaced(t *testing.T) {
	byHand := "name: east-1\ndoor: 192.0.2.1:23731\npaths:\n  - door: 203.0.113.1\n    limit: 300\nports: [lo]\ncontrollers: [\"https://192.0.2.9:1\"]\ncredentials: STATE\nshare: full\n"
	for what, c := range map[string]struct {
		doors []string
		says  string // "": it is left
	}{
		"the same":                     {[]string{"192.0.2.1"}, ""},
		"the same, with all addresses": {[]string{"192.0.2.1", "203.0.113.1:23731"}, ""},
		"another door":                 {[]string{"192.0.2.7"}, "change the file by hand"},
		"a door that is among the further addresses": {[]string{"203.0.113.1"}, "change the file by hand"},
		"one address twice":                          {[]string{"192.0.2.1", "192.0.2.1:1"}, "named twice"},
		"no address of one machine":                  {[]string{"0.0.0.0"}, "expected an address of one machine"},
	} {
		dir := t.TempDir()
		j := &joining{config: filepath.Join(dir, "boostd.yaml"), state: filepath.Join(dir, "state"), doors: c.doors, ports: []string{"lo"}}
		j.name, j.addresses, j.token.Role = "east-1", []string{"192.0.2.9:1"}, trust.Agent
		text := strings.ReplaceAll(byHand, "STATE", j.state)
		if err := os.WriteFile(j.config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := j.fillAgent()
		if err == nil {
			err = j.leavesAgent(t.Context())
		}
		said := ""
		if known := (*exit.Error)(nil); errors.As(err, &known) {
			said = known.Error() + "; " + known.Hint
		}
		if (err == nil) != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", what, said, c.says)
		}
		if now, err := os.ReadFile(j.config); err != nil || string(now) != text {
			t.Errorf("%s: the file says\n%s%v", what, now, err)
		}
	}
}

// What an operator has written into an agent's file stays when the agent joins again, in whatever order its controllers answer;
// another door, port or controller takes the place of the one before, and what was there is kept and told.
func TestAnAgentThatJoinsAgainKeepsWhatWasWrittenByHand(t *testing.T) {
	dir := t.TempDir()
	agent := func(change func(*joining)) *joining {
		j := &joining{config: filepath.Join(dir, "boostd.yaml"), state: filepath.Join(dir, "state"), doors: []string{"192.0.2.1"}, ports: []string{"lo"}}
		j.at = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:23731")}
		j.name, j.addresses, j.token.Role = "east-1", []string{"192.0.2.9:1", "192.0.2.8:1"}, trust.Agent
		if change != nil {
			change(j)
		}
		return j
	}
	if err := agent(nil).configure(); err != nil {
		t.Fatal(err)
	}
	byHand, err := os.ReadFile(agent(nil).config)
	if err != nil {
		t.Fatal(err)
	}
	byHand = append(byHand, "share: yield # until the new line\nlimit: 200\n"...)
	if err := os.WriteFile(agent(nil).config, byHand, 0o644); err != nil {
		t.Fatal(err)
	}
	again := agent(func(j *joining) { j.addresses = []string{"192.0.2.8:1", "192.0.2.9:1"} })
	if err := again.configure(); err != nil || again.rewritten {
		t.Errorf("the same, by another controller first: it is written anew: %v, %v", again.changes, err)
	}
	for what, c := range map[string]struct {
		change func(*joining)
		says   string
	}{
		"door": {func(j *joining) { j.doors[0], j.at[0] = "192.0.2.2", netip.MustParseAddrPort("192.0.2.2:23731") }, `door: "192.0.2.2"`},
		"paths": {func(j *joining) {
			j.doors, j.at = append(j.doors, "192.0.2.129"), append(j.at, netip.MustParseAddrPort("192.0.2.129:23731"))
		}, `paths: ["192.0.2.129"]`},
		"port":       {func(j *joining) { j.ports = []string{"lo", "eth1"} }, `ports: ["lo", "eth1"]`},
		"controller": {func(j *joining) { j.addresses = []string{"192.0.2.7:1"} }, `controllers: ["https://192.0.2.7:1"]`},
	} {
		if err := os.WriteFile(again.config, byHand, 0o644); err != nil {
			t.Fatal(err)
		}
		other := agent(c.change)
		if err := other.configure(); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(other.config)
		if err != nil || !strings.Contains(string(now), c.says) || !strings.Contains(string(now), "share: yield # until the new line\nlimit: 200\n") {
			t.Errorf("another %s: the file says\n%s%v", what, now, err)
		}
		if _, err := boostd.Read(other.config); err != nil {
			t.Errorf("another %s: the daemon does not take it: %v", what, err)
		}
		before, err := os.ReadFile(other.config + ".before")
		if err != nil || string(before) != string(byHand) || !other.replaced || len(other.changes) != 1 {
			t.Errorf("another %s: told is %q; kept is\n%s%v", what, other.changes, before, err)
		}
	}
}
