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
	"internal/controller/controld/lead/campaign.go", "internal/controller/controld/services/services.go",
	"internal/cli/events/events.go", "internal/cli/output/output.go", "internal/cli/flow/explain_draw.go", "internal/cli/labcmd/certificate.go",
	"internal/host/hostd/local_flows.go", "internal/host/hostd/mobility.go", "internal/host/mobility/tell.go", "internal/openflow/switchd/operator_api.go",
	"internal/controller/controld/session/deadlines.go",                // a time long past, to end a stream
	"internal/core/session/adopt.go", "internal/core/session/trust.go", // how long certificates and cookies are valid
	"internal/host/places/certificate.go", "internal/controller/controld/certificates/certificates.go", "internal/api/join.go", // and proofs
	"internal/host/mobility/reached.go",                                                                        // a cookie's time slot, too
	"internal/host/hostd/load.go", "internal/router/routerd/orders.go", "internal/controller/controld/disk.go", // what daemons tell of their clocks, and since when
	"internal/controller/controld/pledges/pledges.go", "internal/core/session/probe.go", // until when a locator is certified; a cookie's time slot
	"internal/controller/controld/session/ahead.go", "internal/controller/controld/lead/health.go", "internal/controller/controld/lead/others.go", // whether clocks differ
	"internal/host/hostd/judge.go", "internal/router/routerd/judge.go", "internal/controller/controld/events/event.go", // and what people are told of health, and when
	"internal/controller/controld/registrations/permits.go", "internal/controller/controld/registrations/view.go", "internal/host/permits/permits.go", "internal/host/permits/files.go", // how long permits are valid
	"internal/controller/controld/registrations/kept.go", "internal/controller/controld/registrations/remembered.go", // since when something is as it is, as people are told
	"internal/core/permit/permit.go", "internal/cli/service/key.go", "internal/cli/members/host_status.go",
	"internal/controller/controld/members/tokens.go", "internal/controller/controld/members/members.go", "internal/controller/controld/members/health.go", "internal/controller/controld/gate/peer.go", // and tokens and credentials
	"internal/host/keys/keys.go", "internal/controller/controld/members/rotation.go", "internal/controller/controld/members/authority.go", // since when keys count
	"internal/host/hostd/metrics.go", "internal/cli/joining/token.go",
	"internal/host/gateway/report.go", "internal/host/gateway/streams.go",
	"internal/host/underlay/wg/userspace.go", "internal/openflow/ovs/instance.go", // when a tunnel's peer was last heard, as people are told; a number that nobody had
	"internal/router/emurouter/decide.go",                                                                                                                                                                              // where its own clock begins
	"internal/cli/boost/entry.go", "internal/controller/manifest/boost.go", "internal/controller/controld/boost/orders.go", "internal/controller/controld/boost/view.go", "internal/controller/controld/boost/ways.go", // when entries of boost begin and end, operators mean the time of day; since when a path is away
}

// calendar are the methods and functions of package time that leave the monotonic clock.
var calendar = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Round"}

func TestNoDecisionLooksAtTheCalendar(t *testing.T) {
	looked := map[string]bool{}
	for _, top := range []string{"api", "bpf", "cli", "controller", "core", "host", "openflow", "router"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name := filepath.ToSlash(filepath.Join("internal", strings.TrimPrefix(path, "../../")))
			for _, called := range calendarCalls(t, path) {
				looked[name] = true
				if !slices.Contains(forPeople, name) {
					t.Errorf("%s: %s(): a decision by the time of day? Otherwise list the file in forPeople", name, called)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range forPeople { // an entry of a file that moved would excuse whatever gets its name next
		if !looked[name] {
			t.Errorf("%s: is listed in forPeople and calls none of %v: moved? List it where it is now, or drop it", name, calendar)
		}
	}
}

// calendarCalls are the calls in a file that may leave the monotonic clock.
func calendarCalls(t *testing.T, path string) (calls []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"time"` }) {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(calendar, f.Sel.Name) {
			calls = append(calls, f.Sel.Name)
		}
		return true
	})
	return calls
}
