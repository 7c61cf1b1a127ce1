package rules

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages by level, the lowest first. A package imports only from levels below its
// own, or from its own family (the same entry).
var layers = [][]string{
	{"sid", "examples", "model", "monitoring", "internal/checksum", "internal/durable", "internal/priority"},
	{"wire", "internal/trust"},
	{"internal/core", "internal/ofp", "internal/api", "internal/obs", "internal/ovs", "internal/versions", "internal/yamlfile", "internal/nsenter", "internal/tuntap"},
	{"internal/bpf", "internal/store", "internal/nstest", "emu", "internal/agent", "internal/answers", "internal/ofconn", "internal/oftables", "internal/ofctl", "internal/userstack", "controller", "internal/plot", "internal/capture", "internal/frr", "internal/topo", "internal/manifest", "internal/underlay"},
	{"internal/emurouter"},
	{"internal/emud"},
	{"internal/hostd", "internal/routerd", "internal/controld", "internal/switchd", "internal/lab", "internal/doctor", "internal/setup", "."},
	{"internal/gateway", "internal/support", "internal/bench", "internal/dash", "internal/labapi", "internal/programs", "internal/e2e", "examples/resume"},
	{"internal/demo"},
	{"internal/cli"},
	{"cmd", "internal/kernels", "controller/run", "emu/run", "internal/badinput"},
	{"internal/rules"},
}

// owners says who may import a heavy dependency: a change of it then touches one place.
var owners = map[string][]string{
	"go.etcd.io":                 {"internal/store"},
	"go.uber.org/zap":            {"internal/store"},
	"github.com/cilium/ebpf":     {"internal/bpf"},
	"github.com/prometheus":      {"internal/obs"},
	"github.com/spf13":           {"internal/cli"},
	"github.com/miekg/dns":       {"internal/hostd"},
	"go.yaml.in/yaml":            {"internal/lab", "internal/cli", "internal/yamlfile", "internal/manifest"},
	"github.com/vishvananda":     {"internal/bpf", "internal/hostd", "internal/routerd", "internal/lab", "internal/doctor", "internal/nstest", "internal/underlay"},
	"golang.zx2c4.com/wireguard": {"internal/underlay/wg"},
	"github.com/safchain":        {"internal/lab"},
	"gonum.org":                  {"internal/plot"},
	"gvisor.dev":                 {"internal/userstack"},
	"github.com/osrg/gobgp":      {"internal/frr/mrt"},
	"github.com/quic-go":         {"internal/programs/quic"},
	"github.com/pires":           {"internal/gateway"},
	"github.com/gopacket":        {"emu/pcap"},
	"pgregory.net/rapid":         {}, // tests only
	"github.com/rogpeppe":        {},
	"google.golang.org/grpc":     {}, // Connect speaks gRPC without it
	"github.com/stretchr":        {},
	"connectrpc.com/connect":     {".", "internal/api", "internal/agent", "internal/hostd", "internal/routerd", "internal/controld", "internal/switchd", "internal/lab", "internal/demo", "internal/bench", "internal/gateway", "internal/cli"},
	"google.golang.org/protobuf": {"internal/api", "internal/agent", "internal/emurouter", "internal/hostd", "internal/routerd", "internal/controld", "internal/switchd", "internal/lab", "internal/demo", "internal/bench", "internal/cli", "internal/store"},
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
			t.Errorf("%s: has no level: give it one in internal/rules/layers_test.go", p.name())
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
