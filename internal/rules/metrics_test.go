package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exporters are the packages that make metrics, with the prefix of their names.
var exporters = map[string]string{"internal/controld": "controld", "internal/routerd": "routerd", "internal/hostd": "hostd", "internal/switchd": "switchd", "internal/gateway": "gateway"}

// makers are the functions whose first argument is a metric's name.
var makers = []string{"Counter", "CounterFunc", "CounterMap", "CounterTable", "Gauge", "GaugeFunc", "GaugeTable", "Histogram", "gauge", "family"}

// metrics are the names that the package makes.
func metricsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseDir(token.NewFileSet(), filepath.Join(root(t), dir), func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed {
		ast.Inspect(p, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if literal, ok := call.Args[0].(*ast.BasicLit); ok && literal.Kind == token.STRING && slices.Contains(makers, name) {
				s, _ := strconv.Unquote(literal.Value)
				names = append(names, s)
			}
			return true
		})
	}
	return names
}

var (
	code       = regexp.MustCompile("`([a-z_]+)`")
	mentioned  = regexp.MustCompile(`scaffold_(controld|routerd|hostd|switchd|gateway)_([a-z_]+)`)
	histograms = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// The page has every metric, and nothing in the page, the alerts and the dashboard is made up.
func TestMetricsAreExplainedAndThoseNamedExist(t *testing.T) {
	page := read(t, "docs/metrics.md")
	exported := map[string]bool{}
	for dir, daemon := range exporters {
		names := metricsOf(t, dir)
		if len(names) == 0 {
			t.Errorf("%s: no metrics found: does this test still know how they are made?", dir)
		}
		for _, name := range names {
			exported[daemon+"_"+name] = true
			if !slices.ContainsFunc(code.FindAllStringSubmatch(page, -1), func(m []string) bool { return m[1] == name }) {
				t.Errorf("docs/metrics.md does not explain %s of %s", name, dir)
			}
		}
	}
	for _, name := range []string{"docs/metrics.md", "monitoring/alerts.yaml", "monitoring/dashboard.json"} {
		for _, m := range mentioned.FindAllStringSubmatch(read(t, name), -1) {
			metric := m[1] + "_" + m[2]
			if !exported[metric] && !exported[histograms.ReplaceAllString(metric, "")] {
				t.Errorf("%s: nobody exports %s", name, m[0])
			}
		}
	}
}

// What packets are counted as is the operator's first hint; each reason has its row.
func TestReasonsOfPacketsAreExplained(t *testing.T) {
	page := read(t, "docs/metrics.md")
	quoted := regexp.MustCompile(`"([a-z_]+)"`)
	for _, name := range []string{"internal/bpf/host/counters.go", "internal/bpf/router/counters.go"} {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(text), "var reasons")
		list, _, _ = strings.Cut(list, "\n}\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range quoted.FindAllStringSubmatch(list, -1) {
			if m[1] != "none" && !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("docs/metrics.md does not explain %s of %s", m[1], name)
			}
		}
	}
}
