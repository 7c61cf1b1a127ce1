package switchd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

var space = sid.DefaultSpace()

// A driven is a daemon under a controller that the test plays.
type driven struct {
	t        *testing.T
	target   string // where switches connect
	endpoint string
	joins    chan *joining
	notes    chan *apiv1.Event
	stop     func()
	apiv1connect.UnimplementedAgentHandler
}

// A joining is the controller's end of one switch's stream.
type joining struct {
	t       *testing.T
	join    *apiv1.RouterJoin
	orders  chan *apiv1.RouterOrder // the handler sends them
	reports chan *apiv1.RouterReport
}

// drive runs a daemon until the test ends, or stop is called.
func drive(t *testing.T, cfg Config) *driven {
	t.Helper()
	dir, err := os.MkdirTemp("", "sw") // t.TempDir has too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, target: "unix:" + filepath.Join(dir, "of"), endpoint: "http://" + l.Addr().String(),
		joins: make(chan *joining, 64), notes: make(chan *apiv1.Event, 4096)}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAgentHandler(d))
	go api.Serve(t.Context(), mux, l)
	d.run(cfg)
	return d
}

// run runs the daemon, again after stop.
func (d *driven) run(cfg Config) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg.Listen, cfg.Controller = append(cfg.Listen, d.target), d.endpoint
	log := slog.New(slog.NewTextHandler(d.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	go func() { done <- Run(ctx, cfg, log) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := nstest.Receive(d.t, "the goroutines of switchd", done); err != nil {
			d.t.Errorf("the daemon ended with %v", err)
		}
	}
	d.t.Cleanup(d.stop)
	nstest.Wait(d.t, "the log of switchd", func() error {
		c, err := net.Dial("unix", strings.TrimPrefix(d.target, "unix:"))
		if err == nil {
			c.Close()
		}
		return err
	})
}

// Note implements the agent API.
func (d *driven) Note(_ context.Context, req *connect.Request[apiv1.Event]) (*connect.Response[apiv1.NoteResponse], error) {
	d.notes <- req.Msg
	return connect.NewResponse(&apiv1.NoteResponse{}), nil
}

// Router implements the agent API.
func (d *driven) Router(ctx context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	j := &joining{d.t, first.GetJoin(), make(chan *apiv1.RouterOrder, 100), make(chan *apiv1.RouterReport, 10000)}
	d.joins <- j
	go func() { // ends with the stream
		defer close(j.reports)
		for {
			r, err := stream.Receive()
			if err != nil {
				return
			}
			j.reports <- r
		}
	}()
	for {
		select {
		case o := <-j.orders:
			if err := stream.Send(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// accept waits for a switch and gives it the locator.
func (d *driven) accept(own sid.Locator) *joining {
	d.t.Helper()
	j := nstest.Receive(d.t, "the log of switchd: no switch joined", d.joins)
	j.orders <- &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Joined{Joined: &apiv1.RouterJoined{Network: "test", Locator: own.String(),
		Space:           &apiv1.Space{Services: space.Services.String(), As: space.AS.String(), Identities: space.Identities.String()},
		ProbeIntervalMs: 10, SuspectAfter: 3, GoneAfterMs: 300}}}
	return j
}

// note waits for an event of the kind whose text has the words.
func (d *driven) note(kind, words string) *apiv1.Event {
	d.t.Helper()
	for {
		e := nstest.Receive(d.t, fmt.Sprintf("the events: none of kind %s about %q", kind, words), d.notes)
		if e.Kind == kind && strings.Contains(e.Text, words) {
			return e
		}
	}
}

func snapshotBegin(generation uint64) *apiv1.RouterOrder {
	return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: generation}}}
}

func rulesOrder(r plan.Rules, generation uint64) *apiv1.RouterOrder {
	return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: agent.Encode(r, generation)}}
}

func snapshotCommit(generation uint64) *apiv1.RouterOrder {
	return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: generation}}}
}

func (j *joining) snapshot(generation uint64, r plan.Rules) {
	j.t.Helper()
	j.orders <- snapshotBegin(generation)
	j.orders <- rulesOrder(r, generation)
	j.orders <- snapshotCommit(generation)
	if failed := j.applied(generation); failed != "" {
		j.t.Fatalf("generation %d: %s", generation, failed)
	}
}

func (j *joining) delta(generation uint64, r plan.Rules) (failed string) {
	j.t.Helper()
	j.orders <- rulesOrder(r, generation)
	return j.applied(generation)
}

// applied waits until the switch has the rules, and returns what it refused.
func (j *joining) applied(generation uint64) string {
	j.t.Helper()
	for {
		r := nstest.Receive(j.t, fmt.Sprintf("the log of switchd: generation %d is not applied", generation), j.reports)
		if a := r.GetApplied(); a.GetGeneration() == generation && a != nil {
			return a.Error
		}
	}
}
