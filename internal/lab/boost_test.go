package lab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// boosted is a network with keys, two switches, and a host and an agent at each.
const boosted = `
name: boosted
network: {trust: keys}
nodes:
  ctl: controller
  sw1: {kind: switch, service: true}
  sw2: {kind: switch, service: true}
  c1: host
  x: agent
  y: {kind: agent, settings: {connections: 2, control: cubic, share: full}}
  s1:
    kind: host
    programs:
      - name: web
        run: "python3 -m http.server --bind :: --directory ${dir}/www 80"
        files: {www/index.html: "hello\n"}
      - name: more
        run: "python3 -m http.server --bind :: --directory ${dir}/www 81"
        files: {www/index.html: "hello\n"}
links: [[c1, sw1], [x, sw1], [sw1, sw2], [y, sw2], [s1, sw2]]
boost:
  sites:
    east: {hosts: [c1], agents: [x]}
    west: {hosts: [s1], agents: [y]}
  entries:
    web: {clients: east, servers: west, port: 80}
    more: {clients: east, servers: west, port: 81, mode: rewrite}
`

// Agents are hosts of the network, too, and members of it twice. They carry what the file says as soon as the lab is up; where
// one is killed connections pass, and started again it carries.
func TestAgentsOfALabCarryWhatItsFileSays(t *testing.T) {
	nstest.Root(t)
	nstest.Program(t, "ovs-vswitchd", "openvswitch-switch")
	before, name := lab.Machine(t), nstest.LabNamed("boosted")
	path := filepath.Join(t.TempDir(), "boosted.yaml")
	if err := os.WriteFile(path, []byte(boosted), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "lab", "up", "--name", name, path)
	t.Cleanup(func() { scaffold(t, "lab", "down", name) })
	large := strings.Repeat("Scaffold ", 1<<19)
	www := filepath.Join(lab.DefaultDir, name, "s1/web/www")
	if err := errors.Join(os.WriteFile(filepath.Join(www, "large"), []byte(large), 0o644), os.WriteFile(filepath.Join(www, "huge"), nil, 0o644),
		os.Truncate(filepath.Join(www, "huge"), 1<<30)); err != nil { // more than all sockets and both agents hold
		t.Fatal(err)
	}
	carried := func() uint64 { return sentBy(t, name, "y") }
	var server string
	fetch := func() {
		t.Helper()
		if out := must(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "30", "http://["+server+"]/large"); out != large {
			t.Errorf("%d bytes came of %d", len(out), len(large))
		}
	}
	server = addressOf(t, name, "s1")
	const whence = "scaffold boost agent ls; the agents' logs"
	fetch()
	nstest.Wait(t, whence, func() error {
		if n := carried(); n < uint64(len(large)) {
			return fmt.Errorf("y has sent %d bytes to x", n)
		}
		return nil
	})
	nstest.Wait(t, whence, func() error { // switches write addresses and ports of what goes to this one
		was := carried()
		out := must(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "30", "http://["+server+"]:81/")
		if n := carried(); out != "hello\n" || n == was {
			return fmt.Errorf("%q came by the rewritten entry, and y has sent %d bytes to x, as before", out, n)
		}
		return nil
	})
	// Amid a download: a reset, and not silence, nor an end that looks like a whole file's. 56 is curl's exit code for it. It goes on
	// only when somebody reads, so it is amid it whenever the agent dies.
	slow := exec.Command("/proc/self/exe", "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "60", "http://["+server+"]/huge")
	slow.Stderr = t.Output()
	out, err := slow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "scaffold boost session ls", func() error {
		if out := must(t, "boost", "session", "ls", "--lab", name); !strings.Contains(out, server) {
			return fmt.Errorf("no session: %s", out)
		}
		return nil
	})
	must(t, "lab", "kill", "--lab", name, "x/boostd")
	io.Copy(io.Discard, out)
	if slow.Wait(); slow.ProcessState.ExitCode() != 56 {
		t.Errorf("an agent died, and curl ended with %d", slow.ProcessState.ExitCode())
	}
	fetch()
	must(t, "lab", "start", "--lab", name, "x/boostd")
	nstest.Wait(t, whence, func() error {
		was := carried()
		fetch()
		if n := carried(); n < was+uint64(len(large)) {
			return fmt.Errorf("y has sent %d bytes to x, and %d before", n, was)
		}
		return nil
	})
	must(t, "lab", "down", name)
	if after := lab.Machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// addressOf is the address by which a host speaks for itself.
func addressOf(t *testing.T, name, host string) string {
	t.Helper()
	var all struct {
		Hosts []struct{ Name, Locator string }
	}
	out := must(t, "host", "ls", "--lab", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, h := range all.Hosts {
		if h.Name == host {
			return strings.TrimSuffix(h.Locator, "/64") + "1"
		}
	}
	t.Fatalf("no host %s: %s", host, out)
	return ""
}

// sentBy is how many bytes an agent of a lab has sent to others.
func sentBy(t *testing.T, lab, agent string) uint64 {
	t.Helper()
	var all struct {
		Agents []struct {
			Name string
			Sent uint64 `json:",string"`
		}
	}
	out := must(t, "boost", "agent", "ls", "--lab", lab, "-o", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, a := range all.Agents {
		if a.Name == agent {
			return a.Sent
		}
	}
	return 0
}
