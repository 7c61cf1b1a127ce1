package daemons

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

const network = `
name: my_net
network: NETWORK
services: {web: {ready: "exec:true"}}
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  p: plain
  r2: router
  sw: switch
  c1: host
links:
  - [c1, r1]
  - [r1, p]
  - [p, r2]
  - {ends: [sw, r2], mtu: 1400}
`

// lines are the command lines of a network's daemons, by node.
func lines(t *testing.T, text string) map[string]string {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, all := plan.Make(f), map[string]string{}
	for _, n := range p.Nodes {
		if n.Daemon() != "" && n.Kind != file.Switch {
			all[n.Name] = strings.Join(Argv(p, state.Dir{Base: "/run/l", Lab: f.Name}, "/bin/scaffold", n), " ") + " "
		}
	}
	return all
}

func TestDaemonsAreToldTheirPartOfThePlan(t *testing.T) {
	all := lines(t, strings.Replace(network, "NETWORK", "{trust: keys, journal: true}", 1))
	for node, want := range map[string][]string{
		"ctl": {"/bin/scaffold controld --name ctl --socket /run/l/my_net/ctl/controld.sock ", "--trust keys ", "--openflow-clear ", "--switch sw=", ",mtu=to-r2:1400", "--data /run/l/my_net/ctl/data ", "--network my-net "},
		"r1":  {"/bin/scaffold routerd ", "--service ", "--port to-c1 ", "--port to-p ", "--credentials /run/l/my_net/r1/state ", "--link peer=r2,port=to-p,via="},
		"r2":  {"--bpffs /run/l/my_net/bpf ", "--port to-sw ", "--mgmt "},
		"c1":  {"/bin/scaffold hostd ", "--uplink to-r1 ", "--exec-check true ", "--journal /run/l/my_net/c1/state/journal.jsonl ", "--state /run/l/my_net/c1/state "},
	} {
		for _, w := range want {
			if !strings.Contains(all[node], w) {
				t.Errorf("%s is not told %q: %s", node, w, all[node])
			}
		}
	}
	if strings.Contains(all["r2"], "--service") {
		t.Errorf("r2 is no service router: %s", all["r2"])
	}
}

func TestWhatTheFileDoesNotAskForIsNotTold(t *testing.T) {
	all := lines(t, strings.Replace(network, "NETWORK", "{}", 1))
	for node, line := range all {
		for _, flag := range []string{"--credentials", "--journal", "--cluster", "--openflow-clear", "--peer-clear", "--tunnel"} {
			if strings.Contains(line, flag) {
				t.Errorf("%s is told %s: %s", node, flag, line)
			}
		}
	}
	if !strings.Contains(all["ctl"], "--trust open ") {
		t.Errorf("ctl: %s", all["ctl"])
	}
}

func TestSeveralControllersAreToldOfEachOther(t *testing.T) {
	text := "name: t\nnodes: {a: controller, b: controller, c: controller, r: {kind: router, service: true}}\nlinks: [[r, h]]\n"
	text = strings.Replace(text, "true}}", "true}, h: host}", 1)
	all, keyed := lines(t, text), lines(t, text+"network: {trust: keys}\n")
	for _, node := range []string{"a", "b", "c"} {
		_, rest, _ := strings.Cut(all[node], "--cluster ")
		if members, _, _ := strings.Cut(rest, " "); strings.Count(members, ",") != 2 || strings.Contains(rest, "--peer-clear") {
			t.Errorf("%s is told of %q", node, members)
		}
		if !strings.Contains(keyed[node], "--peer-clear ") {
			t.Errorf("%s of a lab with keys would not start: %s", node, keyed[node])
		}
	}
}

func TestProgramsSeeTheirDaemon(t *testing.T) {
	f, err := file.Parse("t.yaml", []byte("name: t\nnodes: {ctl: controller, r: {kind: router, service: true}, h: host}\nlinks: [[r, h]]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, d := plan.Make(f), state.Dir{Base: "/run/l", Lab: "t"}
	for node, want := range map[string]string{
		"ctl": "SCAFFOLD_API=unix:/run/l/t/ctl/controld.sock", "r": "",
		"h": "SCAFFOLD_API=unix:/run/l/t/h/hostd.sock SCAFFOLD_HOSTD=/run/l/t/h/hostd.sock",
	} {
		if got := strings.Join(Environ(d, p.Node(node)), " "); got != want {
			t.Errorf("programs in %s see %q, want %q", node, got, want)
		}
	}
}

func TestAnAgentIsToldWhereItIsAndWhoSaysWhatItCarries(t *testing.T) {
	f, err := file.Parse("t.yaml", []byte("name: t\nnetwork: {trust: keys}\nnodes: {ctl: controller, sw: {kind: switch, service: true}, h: host, x: agent}\nlinks: [[sw, h], [sw, x]]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, d := plan.Make(f), state.Dir{Base: t.TempDir(), Lab: "t"}
	argv, err := Agent(p, d, "/bin/scaffold", p.Node("x"), netip.MustParseAddr("fd5d:0:1:101::1"))
	if err != nil {
		t.Fatal(err)
	}
	path := d.Program("x", "boostd") + "/boostd.yaml"
	if got := strings.Join(argv, " "); got != "/bin/scaffold boostd --config "+path+" --bpffs "+d.BPF() {
		t.Errorf("started by %q", got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: x\n", "door: \"fd5d:0:1:101::1\"\n", "ports: [to-sw]\n", "controllers: [\"http://[fd5f:0:0:1::1]:23728\"]\n", "credentials: " + d.Program("x", "boostd") + "\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("its file has no %q:\n%s", want, text)
		}
	}
}
