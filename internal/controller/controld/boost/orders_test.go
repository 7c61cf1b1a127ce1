package boost

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func TestWhatIsWrongIsSaidAndNothingIsChanged(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24", Port: 80}); err != nil {
		t.Fatal(err)
	}
	before := n.list().String()
	api := n.API()
	for what, c := range map[string]struct {
		do   func() error
		code connect.Code
		says string
	}{
		"overlap": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "in common"},
		"same name": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.9", Server: "198.51.100.9", Port: 1})
			return err
		}, connect.CodeFailedPrecondition, "deny it first"},
		"bits": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9/24", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "192.0.2.0/24 meant"},
		"nobody's": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "10.0.0.0/8", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "no site has"},
		"accept": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9", Port: 1, Accept: "sometimes"})
			return err
		}, connect.CodeInvalidArgument, "expected answered, or at-once"},
		"reversed": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9", Port: 1, FromUnixMs: 2000, UntilUnixMs: 1000})
			return err
		}, connect.CodeInvalidArgument, "before it begins"},
		"port": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9", Port: 70000})
			return err
		}, connect.CodeInvalidArgument, "port 70000"},
		"needed": {func() error {
			_, err := api.RemoveBoostSite(t.Context(), connect.NewRequest(&apiv1.RemoveBoostSiteRequest{Name: "west"}))
			return err
		}, connect.CodeFailedPrecondition, "an entry needs"},
		"no site": {func() error {
			_, err := api.RemoveBoostSite(t.Context(), connect.NewRequest(&apiv1.RemoveBoostSiteRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no site"},
		"no entry": {func() error {
			_, err := api.DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no entry"},
		"no agent": {func() error {
			_, err := api.DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no agent"},
		"two sites": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south", Prefixes: []string{"10.0.0.0/8"}, Agents: []string{"e1"}}))
			return err
		}, connect.CodeFailedPrecondition, "an agent serves one site"},
		"taken": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south", Prefixes: []string{"192.0.2.128/25"}}))
			return err
		}, connect.CodeInvalidArgument, "both have addresses"},
		"empty": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south"}))
			return err
		}, connect.CodeInvalidArgument, "0 prefixes"},
	} {
		err := c.do()
		if connect.CodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v that says %q", what, err, c.code, c.says)
		}
	}
	if after := n.list().String(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}
