package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/bench/checked"
)

// MoveSize says how much is measured.
type MoveSize struct {
	Runs  int // moves of each kind
	Crowd int // flows on a host that moves; 0 leaves this out
	Rate  checked.Rate
	Loss  bool // the path loses packets: timeouts are its own
	Delay time.Duration
}

// moveBreaks are the lengths of the hard breaks, in turn.
var moveBreaks = []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

// How streams are watched while something moves.
const (
	moveGap   = 2 * time.Millisecond // shortest standstill that is noted
	moveStep  = time.Millisecond
	moveLimit = 20 * time.Second // a standstill this long is an error
	between   = 250 * time.Millisecond
)

// The hosts that move, the two routers of each, and what stands beside them.
const moveClient, moveServer = "c1", "s2"

var moveSides = map[string][2]string{moveClient: {"ra", "rb"}, moveServer: {"rs", "rd"}}

// moveBench is a stream in each direction and datagrams between two hosts that move.
type moveBench struct {
	*Rig
	size     MoveSize
	service  string
	target   string
	ledger   *Ledger
	server   *Program
	programs []*Program // of the stream up, down and the datagrams, in this order
	on       map[string]int
	plain    *plainPath
	rep      Report
}

// Moves measures how long streams stand still when a host moves.
func Moves(ctx context.Context, r *Rig, service string, size MoveSize) (Report, error) {
	b := &moveBench{Rig: r, size: size, service: service, ledger: NewLedger(), on: map[string]int{}}
	if err := b.begin(ctx); err != nil {
		return b.rep, err
	}
	steps := []func(context.Context) error{b.soft, b.beside, b.hard, b.both}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return b.rep, err
		}
	}
	if err := b.finish(); err != nil {
		return b.rep, err
	}
	if size.Crowd > 0 {
		if err := b.crowd(ctx); err != nil {
			return b.rep, err
		}
	}
	b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("streams of %s bytes/s in steps of %v, one each way, every byte checked; datagrams every %v; hard breaks of %v in turn",
		size.Rate, moveStep, moveStep, moveBreaks))
	return b.rep, nil
}

// Flows of the bench, by number.
const (
	flowUp = iota + 1
	flowDown
	flowAsks
)

func (b *moveBench) begin(ctx context.Context) (err error) {
	if b.target, err = serviceTarget(ctx, b.Rig, b.service); err != nil {
		return err
	}
	if b.server, err = b.ledger.Serve(ctx, b.Rig, moveServer, b.target, moveGap); err != nil {
		return err
	}
	if err := awaitServing(ctx, b.Rig, b.service, 2); err != nil { // TCP and UDP
		return err
	}
	rate := b.size.Rate.String()
	for flow, args := range map[int][]string{
		flowUp: {"--up", rate}, flowDown: {"--down", rate}, flowAsks: {"--network", "udp6"},
	} {
		args = append([]string{"checked", "--to", b.target, "--gap", moveGap.String(), "--step", moveStep.String(), "--base", fmt.Sprint(flow)}, args...)
		p, err := b.ledger.Start(b.Rig, moveClient, args...)
		if err != nil {
			return err
		}
		b.programs = append(b.programs, p)
	}
	return b.warm(ctx)
}

// beside starts the streams without Scaffold. They have no part in the first kind of move, which counts what is
// sent again.
func (b *moveBench) beside(ctx context.Context) (err error) {
	b.plain, err = newPlainPath(ctx, b)
	return err
}

// warm waits until all flows run.
func (b *moveBench) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	now := agent.Now()
	for flow := range b.receivers() {
		if err := b.arrived(ctx, flow, now); err != nil {
			return err
		}
	}
	return nil
}

// receivers are the flows with where their bytes arrive.
func (b *moveBench) receivers() map[int]string {
	return map[int]string{flowUp: moveServer, flowDown: moveClient, flowAsks: moveClient}
}

// look returns the receiving end of a flow; a flow that has ended is an error.
func (b *moveBench) look(flow int) (*End, error) {
	for _, f := range b.ledger.Flows(func(f *Flow) bool { return f.ID == uint64(flow) }) {
		for _, e := range f.Ends {
			if e.Ended {
				return nil, fmt.Errorf("flow %d ended on %s: %s", flow, e.Node, e.Err)
			}
		}
		if e := f.Ends[b.receivers()[flow]]; e != nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("flow %d has not begun", flow)
}

// arrived waits until something of a flow arrived after the time.
func (b *moveBench) arrived(ctx context.Context, flow int, after int64) error {
	return b.ledger.Await(ctx, func() error {
		e, err := b.look(flow)
		if err == nil && e.Last <= after {
			err = fmt.Errorf("nothing of flow %d arrived on %s", flow, e.Node)
		}
		return err
	})
}

// firstAfter is how long after the time the first byte of a flow arrived, in ms.
func (b *moveBench) firstAfter(ctx context.Context, flow int, at int64) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	if err := b.arrived(ctx, flow, at); err != nil {
		return 0, err
	}
	e, err := b.look(flow)
	if err != nil {
		return 0, err
	}
	for _, g := range e.Gaps {
		if g.From <= at && at < g.To {
			return float64(g.To-at) / 1e6, nil
		}
	}
	return 0, nil
}

// stood is the longest standstill of a flow that touches the time between, in ms.
func (b *moveBench) stood(flow int, from, to int64) (longest float64, err error) {
	e, err := b.look(flow)
	if err != nil {
		return 0, err
	}
	for _, g := range e.Gaps {
		if g.To > from && g.From < to {
			longest = max(longest, g.Milliseconds())
		}
	}
	return longest, nil
}

// sides are the router that a host hangs on and the other one.
func (b *moveBench) sides(host string) (here, there string) {
	s := moveSides[host]
	return s[b.on[host]], s[1-b.on[host]]
}

// finish ends all flows in peace; every byte must have arrived.
func (b *moveBench) finish() error {
	var errs []error
	for _, p := range b.programs {
		errs = append(errs, p.Finish(moveLimit))
	}
	time.Sleep(between)
	for _, n := range b.ledger.Wrong() {
		errs = append(errs, fmt.Errorf("%s, flow %d: %s", n.Node, n.Flow, n.Err))
	}
	for _, f := range b.ledger.Flows(func(f *Flow) bool { return f.Proto == "tcp" }) {
		c, s := f.Client(), f.Server()
		if c == nil || s == nil || c.Err != "" || s.Err != "" || c.Sent != s.Received || s.Sent != c.Received {
			errs = append(errs, fmt.Errorf("flow %d did not end in peace: client %+v, server %+v", f.ID, c, s))
		}
	}
	return errors.Join(append(errs, b.server.Kill(), b.plain.close())...)
}
