package rules

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages by level, the lowest first. A package imports only from levels below its
// own, or from its own family (the same entry).
var layers = [][]string{
	{"sid", "examples", "internal/tests/freeport", "internal/tests/safety", "internal/tests/seed", "model", "monitoring", "internal/packet/checksum", "internal/linux/durable", "internal/linux/cgroups", "internal/linux/priority", "internal/linux/private", "internal/linux/descriptors", "internal/lab/poll"},
	{"wire", "internal/trust", "internal/packet/header", "internal/packet/lldp", "internal/boost/frame"},
	{"internal/packet/segment", "internal/core", "internal/boost/announce", "internal/boost/seal", "internal/openflow/ofp", "internal/api", "internal/operate/obs", "internal/openflow/ovs", "internal/api/versions", "internal/yamlfile", "internal/linux/nsenter", "internal/linux/tuntap", "internal/lab/v1"},
	{"internal/api/member", "internal/boost/link", "internal/boost/door", "internal/boost/memory", "internal/boost/keeper", "internal/boost/options"},
	{"internal/bpf", "internal/controller/store", "internal/tests/nstest", "emu", "internal/router/agent", "internal/router/answers", "internal/openflow/ofconn", "internal/openflow/oftables", "internal/openflow/ofctl", "internal/openflow/userstack", "controller", "internal/lab/plot", "internal/packet/capture", "internal/lab/frr", "internal/lab/topo", "internal/controller/manifest", "internal/host/routing", "internal/host/underlay", "internal/operate/verdict"},
	{"internal/router/emurouter", "internal/host/tcp", "internal/host/history", "internal/host/naming", "internal/host/checks", "internal/host/greeting", "internal/host/keys", "internal/host/permits", "internal/host/sweep", "internal/lab/file", "internal/boost/trunk", "internal/boost/ends"},
	{"internal/lab/plan", "internal/lab/emud", "internal/host/guests", "internal/host/mobility", "internal/host/registry", "internal/host/tunnels", "internal/host/uplinks", "internal/host/places", "internal/boost/peering"},
	{"internal/host/joining", "internal/lab/wires", "internal/lab/state", "internal/boost/agent"},
	{"internal/lab/processes", "internal/lab/engine", "internal/lab/switches", "internal/lab/routing", "internal/lab/timeline", "internal/lab/daemons", "internal/lab/control", "internal/lab/programs", "internal/boost/joining", "internal/boost/steer", "internal/boost/legs"},
	{"internal/lab/links"},
	{"internal/host/hostd", "internal/router/routerd", "internal/controller/controld", "internal/openflow/switchd", "internal/lab", "internal/operate/doctor", "internal/operate/setup", "internal/boost/boostd", "."},
	{"internal/host/gateway", "internal/operate/support", "internal/lab/dash", "internal/lab/labapi", "internal/lab/agents", "internal/tests/programs", "internal/tests/e2e", "internal/tests/boost", "examples/resume"},
	{"internal/lab/demo", "internal/lab/demo/longpath"},
	{"internal/cli"},
	{"cmd", "bench", "internal/tests/documented", "internal/tests/kernels", "controller/run", "emu/run", "internal/tests/badinput", "internal/tests/runner"},
	{"internal/tests/rules"},
}

// insides are packages that are a folder of rooms, and which of its siblings each room may import. No room imports the
// package that holds it: it declares what it needs of others. docs/architecture.md draws the rooms.
var insides = map[string]map[string][]string{
	"internal/cli": {
		"boost":               {"command", "exit", "output", "remote"},
		"capture":             {"command", "exit", "labcmd", "labs", "remote"},
		"command":             {"exit"},
		"command/commandtest": {"command", "exit"},
		"daemons":             {"command", "etcd", "exit", "remote", "settings"},
		"diagnosis":           {"command", "exit", "output", "remote", "views"},
		"draining":            {"command", "exit"},
		"etcd":                {},
		"events":              {"exit", "output", "remote"},
		"exit":                {},
		"flow":                {"command", "exit", "output", "remote"},
		"gateway":             {"command", "exit", "output", "remote", "settings"},
		"guest":               {"command", "exit", "output", "remote"},
		"helper":              {"exit"},
		"install":             {"command", "daemons", "exit", "gateway", "output", "remote", "settings", "views"},
		"joining":             {"command", "exit", "install", "remote", "settings"},
		"labcmd":              {"command", "exit", "labs", "output"},
		"labs":                {"command", "exit"},
		"members":             {"command", "draining", "exit", "output", "remote", "views"},
		"network":             {"command", "exit", "output", "remote", "views"},
		"output":              {"command"},
		"remote":              {"command", "exit", "output"},
		"remote/remotetest":   {"remote"},
		"run":                 {"command", "draining", "exit", "remote"},
		"service":             {"command", "draining", "exit", "output", "remote", "views"},
		"settings":            {"command", "exit"},
		"state":               {"command", "etcd", "exit", "output", "remote"},
		"views":               {"output"},
	},
	"internal/controller/controld": {
		"boost":         {"boost/legs", "events", "gate", "orders", "session", "specs"},
		"boost/legs":    {},
		"certificates":  {"pledges"},
		"config":        {},
		"controllers":   {},
		"events":        {"session"},
		"explain":       {"events", "specs"},
		"gate":          {"events", "session"},
		"access":        {},
		"grace":         {"events"},
		"lead":          {"config", "controllers", "gate", "orders", "session"},
		"links":         {"events"},
		"locators":      {},
		"loop":          {},
		"members":       {"events", "gate", "orders"},
		"notes":         {"events"},
		"orders":        {"events", "gate"},
		"overrides":     {},
		"places":        {"events", "locators"},
		"pledges":       {},
		"pushes":        {"events"},
		"redirects":     {},
		"registrations": {"events", "specs"},
		"routers":       {"events", "gate", "locators", "pushes", "session"},
		"saving":        {},
		"services":      {"events", "orders", "specs"},
		"session":       {},
		"silences":      {},
		"specs":         {"events"},
		"tunnels":       {"events", "gate"},
	},
}

// beside are the rooms of a daemon, or of a lab, that stand beside it: what only it and they import, docs/architecture.md.
// None imports the daemon, nor a room of its own level, for they have levels of their own.
var beside = map[string][]string{
	"internal/host/hostd": {"internal/host/checks", "internal/host/greeting", "internal/host/guests", "internal/host/joining", "internal/host/keys", "internal/host/mobility", "internal/host/naming", "internal/host/permits", "internal/host/places", "internal/host/registry", "internal/host/routing", "internal/host/history", "internal/host/sweep", "internal/host/tcp", "internal/host/tunnels", "internal/host/uplinks"},
	"internal/lab": {"internal/lab/control", "internal/lab/daemons", "internal/lab/engine", "internal/lab/file", "internal/lab/links", "internal/lab/plan", "internal/lab/processes", "internal/lab/programs",
		"internal/lab/routing", "internal/lab/state", "internal/lab/switches", "internal/lab/timeline", "internal/lab/wires"},
}

// users are who else may import a package that is not for everybody, because its types are what they ask for or are told.
var users = map[string][]string{
	"internal/lab/file":      {"bench", "internal/cli", "internal/lab/labapi", "internal/lab/rig"}, // what a lab and an action are
	"internal/lab/plan":      {"bench", "internal/lab/labapi"},                                     // addresses of nodes
	"internal/lab/state":     {"internal/cli/labs", "internal/lab/labapi"},                         // which labs there are
	"internal/lab/processes": {"internal/cli/labcmd"},                                              // how a program ended
	"internal/lab/engine":    {"internal/cli/labcmd", "internal/cli/labs", "internal/lab/labapi"},  // what the emulator counts
	"internal/lab/timeline":  {"internal/cli/labcmd", "internal/lab/labapi"},                       // results of a run
	"internal/lab/links":     {"internal/cli/labcmd"},                                              // states of links

	// Tunnels have two ends: a host's and a router's, which do not know each other. Commands read their flags and start their
	// process; benchmarks measure them.
	"internal/host/underlay":    {"internal/host/hostd", "internal/host/tunnels", "internal/router/routerd", "internal/cli/daemons", "internal/cli/install", "internal/cli/joining", "bench"},
	"internal/host/underlay/wg": {"internal/cli/daemons", "bench"},
}

// owners says who may import a heavy dependency: a change of it then touches one place.
var owners = map[string][]string{
	"go.etcd.io":                 {"internal/controller/store"},
	"go.uber.org/zap":            {"internal/controller/store"},
	"github.com/cilium/ebpf":     {"internal/bpf", "internal/linux/tuntap"}, // the second for a program of eleven instructions, of the interface and not of the network
	"github.com/prometheus":      {"internal/operate/obs"},
	"github.com/spf13":           {"internal/cli", "bench/cli", "internal/tests/documented"},
	"github.com/miekg/dns":       {"internal/host/naming"},
	"go.yaml.in/yaml":            {"internal/lab/file", "internal/cli", "internal/yamlfile", "internal/controller/manifest"},
	"github.com/vishvananda":     {"internal/bpf", "internal/host/hostd", "internal/host/greeting", "internal/host/guests", "internal/host/places", "internal/host/routing", "internal/host/uplinks", "internal/router/routerd", "internal/lab/wires", "internal/operate/doctor", "internal/tests/nstest", "internal/host/underlay", "internal/operate/verdict"},
	"golang.zx2c4.com/wireguard": {"internal/host/underlay/wg"},
	"github.com/safchain":        {"internal/lab/wires"},
	"gonum.org":                  {"internal/lab/plot"},
	"gvisor.dev":                 {"internal/openflow/userstack"},
	"github.com/osrg/gobgp":      {"internal/lab/frr/mrt"},
	"github.com/quic-go":         {"internal/tests/programs/quic"},
	"github.com/pires":           {"internal/host/gateway"},
	"github.com/gopacket":        {"emu/pcap"},
	"pgregory.net/rapid":         {"internal/tests/seed"}, // tests only
	"github.com/rogpeppe":        {},
	"google.golang.org/grpc":     {}, // Connect speaks gRPC without it
	"github.com/stretchr":        {},
	"connectrpc.com/connect":     {".", "internal/api", "internal/router/agent", "internal/host/hostd", "internal/host/naming", "internal/host/tunnels", "internal/router/routerd", "internal/controller/controld", "internal/openflow/switchd", "internal/lab", "internal/lab/demo", "bench", "internal/host/gateway", "internal/cli"},
	"google.golang.org/protobuf": {"internal/api", "internal/router/agent", "internal/router/emurouter", "internal/host/places", "internal/router/routerd", "internal/controller/controld", "internal/openflow/switchd", "internal/lab", "internal/lab/demo", "bench", "internal/cli", "internal/controller/store", "internal/boost/joining"},
}

// under reports whether the package is dir or below it.
func under(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// level finds the package's level and family: the longest that fits.
func level(pkg string) (at int, family string) {
	at = -1
	for i, families := range layers {
		for _, f := range families {
			if under(pkg, f) && (at < 0 || len(f) > len(family)) {
				at, family = i, f
			}
		}
	}
	return at, family
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range tree(t) {
		from, family := level(p.name())
		if from < 0 {
			t.Errorf("%s: has no level: give it one in internal/tests/rules/layers_test.go", p.name())
			continue
		}
		for _, imported := range p.Imports {
			inside, ok := relative(imported)
			if !ok {
				continue
			}
			to, of := level(inside)
			if to >= from && of != family {
				t.Errorf("%s imports %s, which is no level below it: turn the dependency round or move the code", p.name(), inside)
			}
		}
	}
}

func TestRoomsKnowOnlyTheSiblingsThatTheyMay(t *testing.T) {
	for house, rooms := range insides {
		for _, p := range tree(t) {
			if !under(p.name(), house) || p.name() == house {
				continue
			}
			room := strings.TrimPrefix(p.name(), house+"/")
			may, listed := rooms[room]
			if !listed {
				t.Errorf("%s: say in internal/tests/rules/layers_test.go (insides) which other rooms of %s it may import", p.name(), house)
				continue
			}
			for _, imported := range p.Imports {
				inside, _ := relative(imported)
				if under(inside, house) && !slices.Contains(may, strings.TrimPrefix(inside, house+"/")) {
					t.Errorf("%s imports %s: a room of %s may import %v: declare an interface of what is needed", p.name(), inside, house, may)
				}
			}
		}
	}
}

func TestRoomsAreTheirDaemonsAlone(t *testing.T) {
	of := map[string]string{}
	for daemon, list := range beside {
		top, family := level(daemon)
		if family != daemon {
			t.Errorf("%s has no level of its own", daemon)
		}
		for _, room := range list {
			of[room] = daemon
			if at, family := level(room); family != room || at >= top {
				t.Errorf("%s is a room of %s, and not below it", room, daemon)
			}
		}
	}
	for _, p := range tree(t) {
		for _, imported := range p.Imports {
			inside, ok := relative(imported)
			if daemon := of[inside]; ok && daemon != "" && p.name() != daemon && of[p.name()] != daemon && !anyUnder(p.name(), users[inside]) {
				t.Errorf("%s imports %s, which is a room of %s: only that, and %v, may know it", p.name(), inside, daemon, users[inside])
			}
		}
	}
}

// What is not for everybody is known by those who are listed, each of whom still uses it.
func TestWhoKnowsWhatIsNotForEverybody(t *testing.T) {
	rooms := slices.Concat(slices.Collect(maps.Values(beside))...)
	used := map[[2]string]bool{} // what, by whom
	for _, p := range tree(t) {
		for _, imported := range p.Imports {
			inside, ok := relative(imported)
			may, listed := users[inside]
			if !ok || !listed {
				continue
			}
			if !slices.Contains(rooms, inside) && !under(p.name(), inside) && !anyUnder(p.name(), may) {
				t.Errorf("%s imports %s, which only %v may know", p.name(), inside, may)
			}
			for _, of := range may {
				if under(p.name(), of) {
					used[[2]string{inside, of}] = true
				}
			}
		}
	}
	for pkg, may := range users {
		for _, of := range may {
			if !used[[2]string{pkg, of}] {
				t.Errorf("%s no longer imports %s: take it off the list", of, pkg)
			}
		}
	}
}

func TestCorePackagesAreIslands(t *testing.T) {
	for _, p := range tree(t) {
		if !under(p.name(), "internal/core") || p.name() == "internal/core/plan" {
			continue
		}
		for _, imported := range p.Imports {
			if inside, ok := relative(imported); ok && under(inside, "internal/core") {
				t.Errorf("%s imports %s: only plan may import other core packages", p.name(), inside)
			}
		}
	}
}

func TestHeavyDependenciesHaveOneOwner(t *testing.T) {
	for _, p := range tree(t) {
		for _, imported := range p.Imports {
			for dependency, allowed := range owners {
				if under(imported, dependency) && !anyUnder(p.name(), allowed) {
					t.Errorf("%s imports %s: only %v may", p.name(), imported, allowed)
				}
			}
		}
	}
}

func anyUnder(pkg string, dirs []string) bool {
	for _, d := range dirs {
		if under(pkg, d) {
			return true
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range tree(t) {
		if p.Doc == "" && !generated(t, p) {
			t.Errorf("%s: has no package comment", p.name())
		}
		if strings.HasPrefix(p.Doc, "Package ") && !strings.HasPrefix(p.Doc, "Package "+p.Name+" ") {
			t.Errorf("%s: its comment is about another package: %.60q", p.name(), p.Doc)
		}
		switch path.Base(p.name()) {
		case "util", "utils", "common", "base", "helpers", "pkg", "misc":
			t.Errorf("%s: name the idea", p.name())
		}
	}
}

// generated reports whether no file of the package was written by hand.
func generated(t *testing.T, p listed) bool {
	_, files := parse(t, p)
	return !slices.ContainsFunc(files, func(f *ast.File) bool { return !ast.IsGenerated(f) })
}
