package badinput

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A clock that jumps must change no decision: intervals come from the monotonic reading that time.Now
// carries. It is lost where a time becomes a number, or a number a time. These files do that for people:
// when an event was, since when a host is there.
var forPeople = []string{
	"internal/controld/seat.go", "internal/controld/controllers.go", "internal/controld/services.go", "internal/controld/history.go", "internal/controld/views.go",
	"internal/cli/events.go", "internal/cli/output.go", "internal/cli/explain_draw.go", "internal/cli/lab_certificate.go",
	"internal/hostd/local_flows.go", "internal/hostd/story_tell.go", "internal/switchd/desk.go",
	"internal/controld/deadlines.go",                                   // a time long past, to end a stream
	"internal/core/session/adopt.go", "internal/core/session/trust.go", // how long certificates and cookies are valid
	"internal/hostd/certificate.go", "internal/controld/trust.go", "internal/api/join.go", // and proofs
	"internal/controld/permits.go", "internal/hostd/permits.go", "internal/hostd/permit_files.go", // how long permits are valid
	"internal/core/permit/permit.go", "internal/cli/service_key.go", "internal/cli/host_status.go",
	"internal/controld/tokens.go", "internal/controld/members.go", "internal/controld/peer.go", // and tokens and credentials
	"internal/hostd/keys.go", "internal/controld/rotation.go", "internal/controld/authority.go", // since when keys count
	"internal/hostd/metrics.go", "internal/cli/token.go", "internal/cli/token_use.go",
	"internal/gateway/api.go", "internal/gateway/report.go", "internal/gateway/streams.go",
}

// calendar are the methods and functions of package time that leave the monotonic clock.
var calendar = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Round"}

func TestNoDecisionLooksAtTheCalendar(t *testing.T) {
	for _, top := range []string{"../hostd", "../routerd", "../controld", "../core", "../store", "../bpf", "../cli", "../api", "../agent", "../switchd", "../ofconn", "../oftables", "../userstack", "../gateway"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name := filepath.ToSlash(filepath.Join("internal", strings.TrimPrefix(path, "../")))
			if !slices.Contains(forPeople, name) {
				lookAtClocks(t, path, name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func lookAtClocks(t *testing.T, path, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"time"` }) {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(calendar, f.Sel.Name) {
			t.Errorf("%s: %s(): a decision by the time of day? Otherwise list the file in forPeople", name, f.Sel.Name)
		}
		return true
	})
}
