package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exporters are the packages that make metrics, with the prefix of their names.
var exporters = map[string]string{"internal/controller/controld": "controld", "internal/router/routerd": "routerd", "internal/host/hostd": "hostd", "internal/openflow/switchd": "switchd", "internal/host/gateway": "gateway"}

// lent are packages that make metrics for exporters: each has them under its own prefix.
var lent = map[string][]string{"internal/operate/verdict": {"internal/controller/controld", "internal/router/routerd", "internal/host/hostd"}}

// exportedBy are the names of an exporter's metrics, with those that are made for it.
func exportedBy(t *testing.T, dir string) []string {
	t.Helper()
	names := metricsOf(t, dir)
	for from, to := range lent {
		if slices.Contains(to, dir) {
			names = append(names, metricsOf(t, from)...)
		}
	}
	return names
}

// makers are the functions whose first argument is a metric's name.
var makers = []string{"Counter", "CounterFunc", "CounterMap", "CounterTable", "Gauge", "GaugeFunc", "GaugeTable", "Histogram", "gauge", "family"}

// metrics are the names that the package makes.
func metricsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
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

// sections are the metrics that the page explains, the first column of its tables, by daemon.
func sections(page string) map[string][]string {
	rows, daemon := map[string][]string{}, ""
	for line := range strings.Lines(page) {
		if m := regexp.MustCompile("ames begin with `scaffold_([a-z]+)_`").FindStringSubmatch(line); m != nil {
			daemon = m[1]
		}
		if cells := strings.Split(line, "|"); len(cells) == 5 && daemon != "" { // name, labels, what
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				rows[daemon] = append(rows[daemon], m[1])
			}
		}
	}
	return rows
}

// The page has every metric under its daemon, and nothing in the page, the alerts and the dashboard is made up.
func TestMetricsAreExplainedAndThoseNamedExist(t *testing.T) {
	rows := sections(read(t, "docs/metrics.md"))
	exported := map[string]bool{}
	for dir, daemon := range exporters {
		names := exportedBy(t, dir)
		if len(names) == 0 {
			t.Errorf("%s: no metrics found: does this test still know how they are made?", dir)
		}
		for _, name := range names {
			exported[daemon+"_"+name] = true
			if !slices.Contains(rows[daemon], name) {
				t.Errorf("docs/metrics.md does not explain %s of %s", name, dir)
			}
		}
		for _, row := range rows[daemon] {
			if !exported[daemon+"_"+row] && !slices.Contains(reasonsOf(t), row) && !strings.HasPrefix(row, "session_") {
				t.Errorf("docs/metrics.md explains %s, which %s does not export", row, dir)
			}
		}
	}
	files(t, []string{".md", ".yaml", ".json"}, func(name, text string) {
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			metric := m[1] + "_" + m[2]
			if !exported[metric] && !exported[histograms.ReplaceAllString(metric, "")] {
				t.Errorf("%s: nobody exports %s", name, m[0])
			}
		}
	})
}

// What is counted of messages and flows, and no reason of the edge's: docs/protocol.md §7 has those of attacks.
func TestReasonsOfSessionsAreExplained(t *testing.T) {
	pages := read(t, "docs/protocol.md") + read(t, "docs/metrics.md")
	counted := regexp.MustCompile(`(?:e\.count\(|s\.counters\[)"([a-z_]+)"`)
	known := []string{"malformed", "other_version"} // by a function
	files(t, []string{".go"}, func(name, text string) {
		if !strings.HasPrefix(name, "internal/core/session/") && !strings.HasPrefix(name, "internal/host/mobility/") || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range counted.FindAllStringSubmatch(text, -1) {
			known = append(known, m[1])
			if !strings.Contains(pages, "`session_"+m[1]+"`") {
				t.Errorf("%s counts session_%s, which neither docs/protocol.md nor docs/metrics.md explains", name, m[1])
			}
		}
	})
	for _, m := range regexp.MustCompile("`session_([a-z_]+)`").FindAllStringSubmatch(pages, -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("nothing is counted as session_%s", m[1])
		}
	}
}

// Who makes metrics is known here.
func TestAllExportersAreKnown(t *testing.T) {
	files(t, []string{".go"}, func(name, text string) {
		dir := filepath.ToSlash(filepath.Dir(name))
		for from, to := range lent {
			if !strings.HasSuffix(name, "_test.go") && strings.Contains(text, `scaffold.dev/scaffold/`+from+`"`) && strings.Contains(text, ".Export(") && !slices.Contains(to, dir) {
				t.Errorf("%s exports the metrics of %s, which no test compares with docs/metrics.md", name, from)
			}
		}
		for _, m := range regexp.MustCompile(`(?:obs\.NewMetrics|\.Part)\("([a-z]+)"\)`).FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(name, "_test.go") && !slices.Contains(slices.Collect(maps.Values(exporters)), m[1]) {
				t.Errorf("%s exports metrics of %s, which no test compares with docs/metrics.md", name, m[1])
			}
		}
	})
}

var (
	alertName  = regexp.MustCompile(`\bScaffold[A-Z][A-Za-z]+\b`)
	alertRule  = regexp.MustCompile(`(?m)- alert: (\w+)`)
	labelValue = regexp.MustCompile(`\b(?:reason|fate)=~?\\?"([a-z_|]+)\\?"`)
)

func TestAlertsThatDocumentsNameExist(t *testing.T) {
	var rules []string
	for _, m := range alertRule.FindAllStringSubmatch(read(t, "monitoring/alerts.yaml"), -1) {
		rules = append(rules, m[1])
	}
	for _, name := range alertName.FindAllString(read(t, "docs/metrics.md"), -1) {
		if !slices.Contains(rules, name) {
			t.Errorf("docs/metrics.md: monitoring/alerts.yaml has no alert %s", name)
		}
	}
}

// A query for a reason that nothing is counted as finds nothing, for ever.
func TestReasonsThatAreAskedForExist(t *testing.T) {
	known := reasonsOf(t)
	for _, name := range []string{"docs/metrics.md", "monitoring/alerts.yaml", "monitoring/dashboard.json"} {
		for _, m := range labelValue.FindAllStringSubmatch(read(t, name), -1) {
			for reason := range strings.SplitSeq(m[1], "|") {
				if !slices.Contains(known, reason) {
					t.Errorf("%s: no packet is counted as %s", name, reason)
				}
			}
		}
	}
}

// reasonsOf are the names under which packets are counted, of hosts and of routers.
func reasonsOf(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range []string{"internal/bpf/host/counters.go", "internal/bpf/router/counters.go"} {
		_, list, _ := strings.Cut(read(t, name), "var reasons")
		list, _, _ = strings.Cut(list, "}\n")
		for _, m := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(list, -1) {
			if m[1] != "none" {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// What packets are counted as is the operator's first hint: each reason has its row, and no row is of something else.
func TestReasonsOfPacketsAreExplained(t *testing.T) {
	page, known := read(t, "docs/metrics.md"), reasonsOf(t)
	if len(known) < 50 {
		t.Fatalf("%d reasons found: does this test still know how they are written?", len(known))
	}
	for _, reason := range known {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("docs/metrics.md does not explain %s", reason)
		}
	}
	for _, table := range []string{"| fate | meaning |", "| reason | meaning | worth a look |"} {
		_, rows, found := strings.Cut(page, table+"\n")
		if !found {
			t.Fatalf("docs/metrics.md has no table %s", table)
		}
		rows, _, _ = strings.Cut(rows, "\n\n")
		for row := range strings.Lines(rows) {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
			for _, m := range code.FindAllStringSubmatch(first, -1) {
				if !slices.Contains(known, m[1]) && !strings.HasPrefix(m[1], "session_") {
					t.Errorf("docs/metrics.md explains %s, which nothing is counted as", m[1])
				}
			}
		}
	}
}
