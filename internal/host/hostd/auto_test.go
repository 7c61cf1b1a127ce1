package hostd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A host that is told of no uplink joins by the interface that leads to a router, and makes no tunnel.
func TestAHostFindsItsUplinkByItself(t *testing.T) {
	l := newLink(t)
	other := nstest.New(t, "other")
	nstest.Veth(t, l.host, "eth9", other, "eth9") // leads nowhere
	l.host.Run(t, "ip", "link", "add", "br9", "type", "bridge")
	l.host.Run(t, "ip", "link", "set", "eth9", "master", "br9")
	at := fmt.Sprintf("http://[%s%%25%d]:%d", l.router.LinkLocal(t, "down0"), l.host.Index(t, "up0"), l.port)
	d := l.start(t, func(c *Config) { c.Uplinks, c.Controllers = nil, []string{at} })
	if j := l.controller.until(t, d, "join", joins).GetJoin(); j.Attachment.Router != "r1" || len(j.Others) > 0 {
		t.Errorf("joins by %v and %v, want the router alone", j.Attachment, j.Others)
	}
	nstest.Wait(t, "scaffold host status", func() error {
		s, err := l.local(t).GetHostStatus(context.Background(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		var has []string
		for _, u := range s.Msg.Uplinks {
			has = append(has, u.Interface+" "+u.Tunnel)
		}
		slices.Sort(has) // interfaces have no order of their own
		if got, want := strings.Join(has, ","), "br9 ,sct0 none: a cable leads to a router,up0 "; got != want {
			return fmt.Errorf("its uplinks are %q, want %q", got, want)
		}
		return nil
	})
}

// With no router on any interface it asks the controller for a tunnel within seconds.
func TestAHostWithoutACableAsksForATunnel(t *testing.T) {
	l := newLink(t)
	l.mute.Store(true)
	at := fmt.Sprintf("http://[%s%%25%d]:%d", l.router.LinkLocal(t, "down0"), l.host.Index(t, "up0"), l.port)
	d := l.start(t, func(c *Config) { c.Uplinks, c.Controllers = nil, []string{at} })
	d.WaitFor(t, "no tunnel; trying again")
	d.WaitFor(t, "the controller: ") // which knows no tunnels here
	l.mute.Store(false)
	l.controller.until(t, d, "join", joins)
}

func TestAutoStandsAlone(t *testing.T) {
	for _, c := range []struct {
		uplinks []string
		want    string
	}{
		{nil, ""}, {[]string{"auto"}, ""}, {[]string{"eth0", "auto"}, "want it alone"}, {[]string{"auto", "auto"}, "want it alone"},
	} {
		err := (&Config{Name: "h", Uplinks: c.uplinks}).Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("uplinks %q: %v, want %q", c.uplinks, err, c.want)
		}
	}
}
