package programs

import (
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A journey is a lab of its own whose two hosts move, with one service at one of them: the server that a
// connection has found stays the one that it talks to.
type journey struct {
	*service
	at   map[string]string // where each host is: the router
	hops int               // of c1
}

// others is where a host goes next.
var others = map[string]string{"ra": "rb", "rb": "ra", "rs": "rd", "rd": "rs"}

func newJourney(t *testing.T) *journey {
	t.Helper()
	nstest.Root(t)
	f, err := file.Load("testdata/moves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Name = nstest.LabName() + "_mv"
	l, err := lab.Up(context.Background(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), f.Name, lab.Options{}); err != nil {
			t.Errorf("take the lab down: %v", err)
		}
	})
	admin, err := l.Admin()
	if err != nil {
		t.Fatal(err)
	}
	j := &journey{&service{t: t, net: network{l, admin}, name: "ride"}, map[string]string{"c1": "ra", "s1": "rs"}, 0}
	j.host, j.addr = j.net.create(t, j.name)
	t.Cleanup(j.explain)
	return j
}

// do carries out an action of the lab, as a timeline writes it.
func (j *journey) do(text string) {
	j.t.Helper()
	a, err := file.ParseAction(text)
	if err == nil {
		err = j.net.lab.Do(j.t.Context(), a)
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// move takes a host to its other router. how is as in the action: "gap 300ms", "gap 50ms first".
func (j *journey) move(host, how string) {
	j.t.Helper()
	if host == "c1" {
		j.hops++
	}
	from := j.at[host]
	j.at[host] = others[from]
	j.do("move " + host + " " + from + " " + others[from] + " " + how)
}

// middle sets the links between the routers.
func (j *journey) middle(params string) {
	j.t.Helper()
	for _, r := range []string{"ra", "rb", "rd"} {
		j.do("link " + r + " rs " + params)
	}
}

// client runs a program on c1 to its end; it must succeed.
func (j *journey) client(argv ...string) string {
	j.t.Helper()
	out, err := j.net.run("c1", argv)
	if err != nil {
		j.t.Fatalf("c1: %q: %v\n%s", argv, err, tail(out))
	}
	return strings.TrimSpace(out)
}

// command runs a scaffold command at c1's daemon.
func (j *journey) command(args ...string) {
	j.t.Helper()
	args = append(args, "--api", "unix:"+j.net.lab.Socket("c1"))
	if out, err := exec.Command(self, args...).CombinedOutput(); err != nil {
		j.t.Fatalf("scaffold %q: %v\n%s", args, err, out)
	}
}

// daemon asks that of c1.
func (j *journey) daemon(ask func(ctx context.Context, c1 apiv1connect.LocalClient) error) {
	j.t.Helper()
	client, base, err := api.Dial("unix:" + j.net.lab.Socket("c1"))
	if err != nil {
		j.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if err := ask(j.t.Context(), apiv1connect.NewLocalClient(client, base)); err != nil {
		j.t.Fatal(err)
	}
}

// flows are those of a program on c1, by their stable identifiers: what does not change when they move.
func (j *journey) flows(pid int) map[string]*apiv1.Flow {
	j.t.Helper()
	found := map[string]*apiv1.Flow{}
	j.daemon(func(ctx context.Context, c1 apiv1connect.LocalClient) error {
		r, err := c1.ListFlows(ctx, connect.NewRequest(&apiv1.ListFlowsRequest{}))
		if err != nil {
			return err
		}
		for _, f := range r.Msg.Flows {
			if f.Role == "client" && int(f.Pid) == pid && strings.HasPrefix(f.Peer, "["+j.addr.String()+"]:") {
				found[f.Stable] = f
			}
		}
		return nil
	})
	return found
}

func (j *journey) stable(r *rider) []string { return slices.Sorted(maps.Keys(j.flows(r.pid))) }

func (j *journey) uplinks() (all []*apiv1.Uplink) {
	j.t.Helper()
	j.daemon(func(ctx context.Context, c1 apiv1connect.LocalClient) error {
		r, err := c1.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		all = r.Msg.Uplinks
		return nil
	})
	return all
}
