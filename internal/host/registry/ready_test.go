package registry

import (
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A command that this host does not allow: the instance is not ready and says what to add, and nothing is tried.
func TestAnInstanceWhoseCheckIsNotAllowedIsNotReady(t *testing.T) {
	var said strings.Builder
	r := in(t, &world{}, &said)
	i := &instance{trusted: true}
	r.instances[web] = i
	r.policies[webID] = &apiv1.ServicePolicy{Name: "db", Policy: &apiv1.Policy{Ready: "exec:pg_isready -q"}}
	r.startChecks(web, i, []uint16{0})
	if v := i.verdict(true); !strings.Contains(v.reason, "exec:pg_isready -q") || !strings.Contains(v.reason, "hostd.yaml") {
		t.Errorf("verdict %q, want it to name the check and the file", v.reason)
	}
	if !strings.Contains(said.String(), `exec-check: [\\\"pg_isready -q\\\"]`) && !strings.Contains(said.String(), `exec-check: [\"pg_isready -q\"]`) {
		t.Errorf("the log does not have the line to add: %s", said.String())
	}
}
