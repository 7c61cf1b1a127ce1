package lab_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// named is a client beside the agent x, and two who serve a name beside the agent y.
const named = `
name: named
network: {trust: keys}
nodes:
  ctl: controller
  sw1: {kind: switch, service: true, block: 1}
  sw2: {kind: switch, service: true, block: 2}
  c1: host
  x: agent
  y: agent
  s1: {kind: host, programs: [{name: web, service: web, run: "python3 -m http.server --bind :: --directory ${dir}/www 80", files: {www/index.html: "s1"}}]}
  s2: {kind: host, programs: [{name: web, service: web, run: "python3 -m http.server --bind :: --directory ${dir}/www 80", files: {www/index.html: "s2"}}]}
links: [[c1, sw1], [x, sw1], [sw1, sw2], [y, sw2], [s1, sw2], [s2, sw2]]
services: {web: {}}
`

// An operator says that a name is to be boosted, and unmodified curl is carried to it. Where an instance dies the next connection
// goes to the other one, and where an agent does to whoever serves, unboosted; none is refused.
func TestANameIsBoosted(t *testing.T) {
	nstest.Root(t)
	nstest.Program(t, "ovs-vswitchd", "openvswitch-switch")
	name := nstest.LabNamed("named")
	path := filepath.Join(t.TempDir(), "named.yaml")
	if err := os.WriteFile(path, []byte(named), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "lab", "up", "--name", name, path)
	t.Cleanup(func() { scaffold(t, "lab", "down", name) })
	large := strings.Repeat("Scaffold ", 1<<16)
	for _, s := range []string{"s1", "s2"} {
		if err := os.WriteFile(filepath.Join(lab.DefaultDir, name, s, "web/www/large"), []byte(large), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sent := func() uint64 { return sentBy(t, name, "y") }
	fetch := func() error {
		out, errs, code := scaffold(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "30", "http://web.svc/large")
		if code != 0 || out != large {
			return fmt.Errorf("%d bytes came of %d: %s", len(out), len(large), errs)
		}
		return nil
	}
	// served waits until x serves the name for its site, or does not.
	served := func(want bool) {
		t.Helper()
		nstest.Wait(t, "scaffold service show web; the agents' logs", func() error {
			if out := must(t, "service", "show", "web", "--lab", name); strings.Contains(out, "for site east, by an agent") != want {
				return fmt.Errorf("served by an agent: %v\n%s", !want, out)
			}
			return nil
		})
	}
	carried := func() {
		t.Helper()
		nstest.Wait(t, "scaffold boost agent ls; the agents' logs", func() error {
			was := sent()
			if err := fetch(); err != nil {
				return err
			}
			if now := sent(); now < was+uint64(len(large)) {
				return fmt.Errorf("y has sent %d bytes to x, and %d before", now, was)
			}
			return nil
		})
	}
	must(t, "boost", "site", "set", "east", "--lab", name, "--prefix", "fd5d:0:1:100::/56", "--agent", "x", "--on-path")
	must(t, "boost", "site", "set", "west", "--lab", name, "--prefix", "fd5d:0:1:200::/56", "--agent", "y", "--on-path")
	served(false)
	must(t, "service", "policy", "web", "--boost", "--lab", name)
	served(true)
	carried()
	must(t, "lab", "kill", "--lab", name, "s1/web")
	carried()
	for _, agent := range []string{"y", "x"} {
		must(t, "lab", "kill", "--lab", name, agent+"/boostd")
		served(false)
		if err := fetch(); err != nil {
			t.Errorf("without %s: %v", agent, err)
		}
		must(t, "lab", "start", "--lab", name, agent+"/boostd")
		served(true)
		carried()
	}
	whose(t, name)
	must(t, "service", "policy", "web", "--boost=false", "--lab", name)
	served(false)
	if err := fetch(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// whose asks at the server whose connection it has, while one is carried.
func whose(t *testing.T, name string) {
	t.Helper()
	idle := exec.Command("/proc/self/exe", "lab", "exec", "--lab", name, "c1", "--", "python3", "-c",
		"import socket; s = socket.create_connection(('web.svc', 80)); print('connected', flush=True); s.recv(1)")
	out, err := idle.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		idle.Process.Signal(syscall.SIGTERM)
		idle.Wait() // it was told to end
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "scaffold flow ls; scaffold boost session ls", func() error {
		var all struct {
			Flows []struct {
				Role, Peer, Host string
				Pid              int
			}
		}
		said := must(t, "flow", "ls", "--lab", name, "-o", "json")
		if err := json.Unmarshal([]byte(said), &all); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for _, f := range all.Flows {
			// Those of the downloads before are known for a while, 100 of them on a slow machine, and have no process any more: to
			// ask for each of them takes longer than there is time.
			if f.Role != "server" || f.Host != "s1" && f.Host != "s2" || f.Pid == 0 {
				continue
			}
			out, _, _ := scaffold(t, "flow", "who", f.Peer, "--lab", name) // one that has ended meanwhile is nobody's
			if strings.Contains(out, "carried for") && strings.Contains(out, "host c1, process python3") {
				return nil
			}
		}
		return fmt.Errorf("nobody says that c1 is the client: %s", said)
	})
}
