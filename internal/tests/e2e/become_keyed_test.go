package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// keyed is this binary in a network that gets keys: the lab's daemons are started with the arguments of an open one.
func keyed(t *testing.T, u *upgrade) string {
	t.Helper()
	script := fmt.Sprintf(`#!/bin/sh
daemon=$1
for a; do
	shift
	[ "$daemon $last" != "controld --trust" ] || a=keys
	[ "$last" != --name ] || name=$a
	last=$a
	set -- "$@" "$a"
done
[ "$daemon" != routerd ] || set -- "$@" --credentials "%s"
exec %s "$@"
`, strings.Replace(u.lab.ProgramDir("NODE", "state"), "NODE", "$name", 1), u.versions["this"])
	file := filepath.Join(t.TempDir(), "keyed")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAnOpenNetworkGetsKeysUnderLiveFlows as docs/install.md says it: the controller first, then each machine joins once
// with a token and begins again. No flow notices, none is reset, and who has no token is outside from then on.
func TestAnOpenNetworkGetsKeysUnderLiveFlows(t *testing.T) {
	u := theUpgrade(t, "this", "open")
	u.versions["keyed"] = keyed(t, u)
	at := netip.AddrPortFrom(u.lab.Plan().Node("ctl").Management, plan.ControllerPort).String()
	u.rules(at, true)
	before := map[string]any{}
	for _, host := range []string{"c1", "s1", "s2"} {
		before[host] = u.locator(host)
	}
	since := u.lastEvent()
	l := u.startLoad(u.addr)

	u.replace("ctl/controld", "keyed")
	u.hasKeys()
	u.rules(at, false)
	l.progress("after the network has got its key, and nobody has joined")
	for _, daemon := range []string{"r1/routerd", "r2/routerd", "s1/hostd", "s2/hostd", "c1/hostd"} {
		node, _, _ := strings.Cut(daemon, "/")
		u.joins(node, at, strings.HasSuffix(daemon, "routerd"))
		u.replace(daemon, "keyed")
		l.progress("after " + node + " has joined")
	}
	u.together()
	u.newFlows(u.addr, "in the network that has keys")
	l.goesBy("c1", 0, 1)
	l.progress("after a move in the network that has keys")
	l.finish()
	u.nothingWithdrawn(since)
	u.allServe()
	for host, was := range before {
		if now := u.locator(host); now != was {
			t.Errorf("%s was at %v, and in the network that has keys it is at %v", host, was, now)
		}
	}
	u.rules(at, false)
}

// hasKeys waits until the controller says so.
func (u *upgrade) hasKeys() {
	u.t.Helper()
	nstest.Wait(u.t, u.look(), func() error {
		s, err := u.admin.GetStatus(u.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		if err == nil && s.Msg.Trust != "keys" {
			err = fmt.Errorf("the network is %s", s.Msg.Trust)
		}
		return err
	})
}

// joins redeems a token for a node, as its operator would.
func (u *upgrade) joins(node, at string, router bool) {
	u.t.Helper()
	role, flags := "host", []string{"--uplink", "lo"}
	if router {
		role, flags = "router", []string{"--service", "--port", "lo"}
	}
	token, _, _ := strings.Cut(strings.TrimSpace(u.must("ctl", "token", "create", "--role", role, "--name", node, "--lab", u.lab.File.Name)), "\n")
	u.must("ctl", append([]string{"join", "--token", token, "--name", node, "--state", u.lab.ProgramDir(node, "state"),
		"--config", filepath.Join(u.t.TempDir(), role+".yaml"), at}, flags...)...)
}

// rules tries to order something from elsewhere than the controller's socket, in the clear and without a credential: the
// removal of what is not there, which says whether it was looked for.
func (u *upgrade) rules(at string, may bool) {
	u.t.Helper()
	out, err := u.run("r1", self, "service", "rm", "nowhere", "--api", "http://"+at)
	if err == nil || strings.Contains(out, "no such service") != may {
		u.t.Errorf("somebody without a credential orders: %v, %s; taken: %v", err, out, may)
	}
}
