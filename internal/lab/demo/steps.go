package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab/rig"
	"scaffold.dev/scaffold/internal/lab/split"
)

// limit bounds every wait for something that must happen.
const limit = 10 * time.Second

// stopAtMost is how long a program stands still, where a busy machine takes long for the requests that go past it: those
// that wait for it lose patience after twice that.
const stopAtMost = 4 * time.Second

// slow is when a request counts as held up by a server that does not answer: hundreds of times the
// usual, and less than a TCP retransmission of a first packet.
const slow = 500 * time.Millisecond

// A step shows one claim under the steady load.
type step struct {
	name, claim string
	run         func(context.Context, *show) (Result, error)
	stops       bool // an instance is to be not ready
}

var steps = []step{
	{"a", "three nginx appear one by one", appear, false},
	{"b", "weights 3:1:0 obeyed", weights, false},
	{"c", "one nginx killed with -9", killed, false},
	{"c", "one host cut off", cutOff, false},
	{"d", "one instance drained under load", drained, false},
	{"e", "controller killed, then restarted", controllerRestart, false},
	{"f", "one nginx stopped (kill -STOP)", stopped, true},
}

// show is the state that the steps share.
type show struct {
	*rig.Rig
	load *Load
	say  func(format string, args ...any)
}

// appear starts one server after the other and watches the requests reach it.
func appear(ctx context.Context, s *show) (Result, error) {
	var first []string
	var begin int
	var served time.Time // requests that began earlier were rightly refused
	for i, server := range servers {
		mark, start := s.load.Mark(), time.Now()
		if err := s.Act(ctx, "start %s/nginx", server); err != nil {
			return Result{}, err
		}
		q, ok := s.load.Await(mark, limit, answeredBy(server))
		if !ok {
			return Result{}, fmt.Errorf("no request reached nginx on %s within %v of its start", server, limit)
		}
		if i == 0 {
			begin, served = mark, q.End
		}
		s.say("nginx on %s started; its first answer came %s after the command", server, ms(q.End.Sub(start)))
		first = append(first, ms(q.End.Sub(start)))
		s.load.AwaitCount(s.load.Mark(), 200, limit)
	}
	const byWget = 60
	got, err := runWget(s.Rig, "c2", byWget)
	if err != nil {
		return Result{}, err
	}
	mark := s.load.Mark()
	s.load.AwaitCount(mark, 600, limit)
	spread := Count(s.load.Since(mark))
	all := Count(after(s.load.Since(begin), served.Add(lateLine)))
	p := chiSquare(spread.ByServer, 1, 1, 1)
	r := s.result(begin, all)
	r.Requests += byWget
	r.Seen = fmt.Sprintf("first answers after %s; then %s (p = %.2g)%s", strings.Join(first, ", "), shares(spread.ByServer), p, reasons(all.Failed))
	if len(all.Failed) > 0 {
		r.Seen += fmt.Sprintf("; the last one that failed began %s after the first answer", ms(all.LastFailedStart(served)))
	}
	r.Holds = len(all.Failed) == 0 && p >= 0.001 && len(got) == len(servers)
	return r, nil
}

// lateLine is how much later than it was a request may seem to have begun on a busy machine, after Requests.correct: a
// pause of curl is up to some milliseconds longer than it was told. There is one service router, so whoever is refused after
// somebody was served asked it before.
const lateLine = 20 * time.Millisecond

// after are the requests that began later than from.
func after(all []Request, from time.Time) (out []Request) {
	for _, q := range all {
		if q.Start.After(from) {
			out = append(out, q)
		}
	}
	return out
}

// weights sets 3:1:0 and counts what the servers log.
func weights(ctx context.Context, s *show) (Result, error) {
	for i, w := range []int{3, 1, 0} {
		if err := s.Act(ctx, "weight web %s %d", servers[i], w); err != nil {
			return Result{}, err
		}
	}
	set := time.Now()
	mark := s.load.Mark()
	if !s.quietFrom(mark, servers[2], set) {
		return Result{}, fmt.Errorf("%s is still asked %v after its weight became 0", servers[2], limit)
	}
	before, err := s.accessLogs()
	if err != nil {
		return Result{}, err
	}
	burst, err := runAB(ctx, s.Rig, "c2", 6000, nil)
	if err != nil {
		return Result{}, err
	}
	now, err := s.accessLogs()
	if err != nil {
		return Result{}, err
	}
	counts := since(now, before)
	p := chiSquare(counts, 3, 1, 0)
	r := s.result(mark, Count(s.load.Since(mark)))
	r.Requests += burst.Complete
	r.Failed += burst.Failed
	r.Seen = fmt.Sprintf("%s in the servers' logs (p = %.2g)", shares(counts), p)
	r.Holds = p >= 0.001 && counts[servers[2]] == 0 && r.Failed == 0
	return r, s.even(ctx)
}

// even gives all servers the same weight again.
func (s *show) even(ctx context.Context) error {
	for _, server := range servers {
		if err := s.Act(ctx, "weight web %s 100", server); err != nil {
			return err
		}
	}
	return s.back(servers[2])
}

// killed ends all processes of one nginx while others ask as fast as they can.
func killed(ctx context.Context, s *show) (Result, error) {
	mark := s.load.Mark()
	burst, err := StartLoad(s.Rig, "c2", flatOut, 0)
	if err != nil {
		return Result{}, err
	}
	defer burst.Stop()
	defer context.AfterFunc(ctx, burst.Stop)() // wakes every wait
	burst.AwaitCount(0, 1500, limit)
	if err := s.Act(ctx, "kill s2/nginx"); err != nil {
		return Result{}, err
	}
	at := time.Now()
	went := burst.AwaitCount(burst.Mark(), 1500, limit) && s.load.AwaitCount(s.load.Mark(), 200, limit)
	burst.Stop()
	steady, fast := Count(s.load.Since(mark)), Count(burst.Since(0))
	last := max(steady.LastFailedStart(at), fast.LastFailedStart(at))
	r := s.result(mark, steady)
	r.Requests += burst.Mark()
	r.Failed += len(fast.Failed)
	r.Seen = fmt.Sprintf("last failed request began %s after it; failed: %d of %d curls' without a pause, %d of %d others'%s",
		ms(last), len(fast.Failed), flatOut, len(steady.Failed), curls, reasons(append(steady.Failed, fast.Failed...)))
	r.Holds = went && last <= 50*time.Millisecond && len(fast.Failed) <= 2*flatOut
	if err := s.Act(ctx, "start s2/nginx"); err != nil {
		return Result{}, err
	}
	return r, s.back("s2")
}

// cutOff takes one host off the network. Requests in flight there stand still.
func cutOff(ctx context.Context, s *show) (Result, error) {
	mark := s.load.Mark()
	if err := s.Act(ctx, "cut s3"); err != nil {
		return Result{}, err
	}
	at := time.Now()
	s.load.AwaitCount(s.load.Mark(), 400, limit)
	s.say("s3 cut off: requests go to the others")
	if err := s.Act(ctx, "heal s3"); err != nil {
		return Result{}, err
	}
	if err := s.back("s3"); err != nil {
		return Result{}, err
	}
	r, last := s.heldUp(mark, at)
	r.Seen = fmt.Sprintf("last request that it held up began %s after it", ms(last))
	r.Holds = last <= 500*time.Millisecond && r.Failed <= 3*curls
	return r, nil
}

// drained takes one server out in peace.
func drained(ctx context.Context, s *show) (Result, error) {
	mark := s.load.Mark()
	burst, err := runAB(ctx, s.Rig, "c2", 6000, func() error { return s.Act(ctx, "drain web s1") })
	if err != nil {
		return Result{}, err
	}
	quiet := s.quietFrom(mark, "s1", time.Now())
	r := s.result(mark, Count(s.load.Since(mark)))
	r.Requests += burst.Complete
	r.Failed += burst.Failed
	r.Seen = map[bool]string{true: "s1 is asked no more", false: "s1 is still asked"}[quiet]
	r.Holds = quiet && r.Failed == 0
	if err := s.Act(ctx, "undrain web s1"); err != nil {
		return Result{}, err
	}
	return r, s.back("s1")
}

// controllerRestart kills the controller while requests go on.
func controllerRestart(ctx context.Context, s *show) (Result, error) {
	mark := s.load.Mark()
	burst, err := runAB(ctx, s.Rig, "c2", 6000, func() error {
		if err := s.Act(ctx, "kill ctl"); err != nil {
			return err
		}
		s.load.AwaitCount(s.load.Mark(), 300, limit) // a while without any controller
		return s.Act(ctx, "start ctl")
	})
	if err != nil {
		return Result{}, err
	}
	known, err := s.awaitServing(ctx, len(servers))
	if err != nil {
		return Result{}, err
	}
	s.load.AwaitCount(s.load.Mark(), 300, limit)
	r := s.result(mark, Count(s.load.Since(mark)))
	r.Requests += burst.Complete
	r.Failed += burst.Failed
	r.Seen = fmt.Sprintf("back, and knows %d instances again", known)
	r.Holds = r.Failed == 0 && known == len(servers)
	return r, nil
}

// stopped freezes one nginx: it listens still, and serves nothing.
func stopped(ctx context.Context, s *show) (Result, error) {
	mark := s.load.Mark()
	if err := s.Act(ctx, "stop s3/nginx"); err != nil {
		return Result{}, err
	}
	at := time.Now()
	s.load.AwaitCount(s.load.Mark(), 400, stopAtMost)
	if err := s.Act(ctx, "cont s3/nginx"); err != nil {
		return Result{}, err
	}
	if err := s.back("s3"); err != nil {
		return Result{}, err
	}
	r, last := s.heldUp(mark, at)
	r.Seen = fmt.Sprintf("last request that waited for it began %s after it", ms(last))
	r.Holds = last <= time.Second && r.Failed == 0
	return r, nil
}

// heldUp sums up what happened since mark, and when the last request began that failed or was slow.
func (s *show) heldUp(mark int, at time.Time) (Result, time.Duration) {
	all := s.load.Since(mark)
	var last time.Duration
	for _, q := range hurt(all) {
		last = max(last, q.Start.Sub(at))
	}
	return s.result(mark, Count(all)), last
}

// hurt are the requests that failed or took long.
func hurt(all []Request) (out []Request) {
	for _, q := range all {
		if q.Err != "" || q.End.Sub(q.Start) > slow {
			out = append(out, q)
		}
	}
	return out
}

func (s *show) result(mark int, t Tally) Result {
	return Result{Requests: len(s.load.Since(mark)), Failed: len(t.Failed)}
}

// back waits until server answers again.
func (s *show) back(server string) error {
	if _, ok := s.load.Await(s.load.Mark(), limit, answeredBy(server)); !ok {
		return fmt.Errorf("%s did not come back within %v", server, limit)
	}
	return nil
}

// quietFrom waits until 200 requests in a row that began after from went past server.
func (s *show) quietFrom(mark int, server string, from time.Time) bool {
	run := 0
	_, ok := s.load.Await(mark, limit, func(q Request) bool {
		if q.Server == server || q.Start.Before(from) {
			run = 0
			return false
		}
		run++
		return run == 200
	})
	return ok
}

// awaitServing waits until the controller counts n serving instances of the service.
func (s *show) awaitServing(ctx context.Context, n int) (serving int, err error) {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		svc, asked := s.Service(ctx, "web")
		if err = asked; err == nil {
			serving = 0
			for _, i := range svc.Instances {
				if i.State == "serving" {
					serving++
				}
			}
			if serving >= n {
				return serving, nil
			}
		}
		if !s.load.AwaitCount(s.load.Mark(), 20, limit) { // paced by the load, and it shows that it goes on
			return serving, errors.Join(err, errors.New("the load stands still"))
		}
	}
	return serving, err
}

func answeredBy(server string) func(Request) bool {
	return func(q Request) bool { return q.Err == "" && q.Server == server }
}

// chiSquare judges counts by weights; a server of weight 0 must have none.
func chiSquare(counts map[string]int, weights ...float64) float64 {
	var n []int
	var w []float64
	for i, s := range servers {
		if weights[i] == 0 && counts[s] > 0 {
			return 0
		}
		if weights[i] > 0 {
			n = append(n, counts[s])
			w = append(w, weights[i])
		}
	}
	return split.ChiSquare(n, w)
}

// reasons says how requests failed, in the clients' words.
func reasons(failed []Request) string {
	seen := map[string]bool{}
	for _, q := range failed {
		seen[fmt.Sprintf("%s after %s", q.Err, ms(q.End.Sub(q.Start)))] = true
	}
	if len(seen) == 0 {
		return ""
	}
	return " (" + strings.Join(slices.Sorted(maps.Keys(seen)), "; ") + ")"
}
