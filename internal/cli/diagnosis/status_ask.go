package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/core/health"
)

// judgeWait bounds the wait for the network's judgement where a daemon of this machine has one of its own. A controller
// that stands by gives its own after 0.7 s; more would keep people waiting for what does not come.
const judgeWait = 2 * time.Second

// statusWait is the same where nobody else can be asked: a leader asks the other controllers and its own store meanwhile,
// 2 s at most (internal/operate/verdict).
const statusWait = 5 * time.Second

// findings are what was found wrong, by those who were asked.
type findings struct {
	status   *apiv1.Status // nil: nobody told of the network
	leader   string
	asked    []string
	problems [][]*apiv1.Problem // the network's first
	notes    []string
}

// askFindings asks the network, and the daemons of this machine where nothing else was chosen, all at once.
func askFindings(ctx context.Context, r *remote.Remote) (*findings, error) {
	var local []string
	if r.Chosen() == "" && r.Lab == "" {
		for _, name := range []string{"hostd.sock", "routerd.sock"} {
			if socket := filepath.Join(r.Run, name); r.Alive(socket) {
				local = append(local, "unix:"+socket)
			}
		}
	}
	if e := r.Chosen(); strings.HasPrefix(e, "unix:") && (strings.HasSuffix(e, "hostd.sock") || strings.HasSuffix(e, "routerd.sock")) {
		local = append(local, e)
	}
	own := make([]*apiv1.Health, len(local))
	var asking sync.WaitGroup
	for i, endpoint := range local {
		asking.Go(func() { own[i] = askOwn(ctx, endpoint) })
	}
	limit := statusWait
	if len(local) > 0 {
		limit = judgeWait
	}
	var endpoint string
	network, err := command.Interruptible(ctx, func() (h *apiv1.Health, err error) { // to find out whom to ask may take long, too
		h, endpoint, err = askHealth(ctx, r, cmp.Or(r.Patience, limit))
		return h, err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	asking.Wait()
	f := &findings{}
	if err == nil {
		f.take(network, endpoint)
	}
	told := false
	for i, h := range own {
		if h == nil {
			continue
		}
		told = true
		if !slices.Contains(f.asked, local[i]) {
			f.asked = append(f.asked, local[i])
		}
		f.problems = append(f.problems, slices.DeleteFunc(h.Problems, func(p *apiv1.Problem) bool {
			return f.status != nil && p.Kind == string(health.NetworkOpen) // the network said where it is reached, or is not
		}))
	}
	switch {
	case err != nil && !told:
		return nil, err
	case err != nil && endpoint == "" && !f.alone():
		f.notes = append(f.notes, "only "+f.daemons()+" of this machine can be asked here: `scaffold login`, or --api with a controller, shows the network")
	case err != nil && !f.alone():
		f.problems = append(f.problems, unanswered(r, f, err, endpoint))
	}
	return f, nil
}

// take is what the network was judged to be.
func (f *findings) take(h *apiv1.Health, endpoint string) {
	f.status, f.leader = h.Status, h.Leader
	f.asked = append(f.asked, endpoint)
	f.problems = append(f.problems, h.Problems)
	if h.Trouble != "" {
		f.notes = append(f.notes, h.Trouble)
	}
}

// alone reports whether a daemon said already that it has no controller.
func (f *findings) alone() bool {
	for _, list := range f.problems {
		for _, p := range list {
			if k := health.Kind(p.Kind); k == health.NotJoined || k == health.NoUplink || k == health.NoLeader {
				return true
			}
		}
	}
	return false
}

// daemons names those who were asked.
func (f *findings) daemons() string {
	var names []string
	for _, socket := range f.asked {
		names = append(names, strings.TrimSuffix(filepath.Base(socket), ".sock"))
	}
	return strings.Join(names, " and ")
}

// unanswered is the problem that nobody judges the network.
func unanswered(r *remote.Remote, f *findings, err error, endpoint string) []*apiv1.Problem {
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	if slices.Contains(f.asked, endpoint) { // it answers, and hands the question on
		why = "the daemon at " + endpoint + " asks one for us, and " + strings.TrimPrefix(why, "no answer from "+endpoint+": ")
	}
	next := "scaffold controller ls"
	if r.API != "" {
		next += " --api " + r.API
	}
	return []*apiv1.Problem{{Severity: health.Critical.String(), Kind: string(health.NoLeader), What: "no controller answers: " + why, Where: endpoint, Next: next, Count: 1}}
}

// askOwn is what a daemon of this machine finds wrong with itself; nil where it does not answer, or is too old.
func askOwn(ctx context.Context, endpoint string) *apiv1.Health {
	client, base, err := api.Dial(endpoint)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeWait)
	defer cancel()
	h, err := apiv1connect.NewLocalClient(client, base).GetOwnHealth(ctx, connect.NewRequest(new(apiv1.GetHealthRequest)))
	if err != nil {
		return nil
	}
	return h.Msg
}

// askHealth has the network judged. A controller that is older and does not judge tells its state.
func askHealth(ctx context.Context, r *remote.Remote, limit time.Duration) (*apiv1.Health, string, error) {
	client, endpoint, err := r.DialAdmin()
	if err != nil {
		return nil, endpoint, err
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := client.GetHealth(bounded, connect.NewRequest(new(apiv1.GetHealthRequest)))
	switch {
	case connect.CodeOf(err) == connect.CodeUnimplemented:
		status, err := remote.Ask(ctx, client.GetStatus, &apiv1.GetStatusRequest{}, endpoint, "")
		if err != nil {
			return nil, endpoint, err
		}
		return older(status), endpoint, nil
	case err != nil:
		return nil, endpoint, remote.Explain(err, endpoint, "")
	}
	return h.Msg, endpoint, nil
}

// older is what the state of a controller that does not judge shows to be wrong.
func older(s *apiv1.Status) *apiv1.Health {
	h := &apiv1.Health{Status: s, Leader: s.Leader,
		Trouble: fmt.Sprintf("the controller runs %s, which does not judge the network: there may be more problems than these; `scaffold upgrade` says who is to be upgraded", s.Version)}
	if s.Store != "" {
		h.Problems = append(h.Problems, &apiv1.Problem{Severity: health.Critical.String(), Kind: string(health.StoreFailing), Where: s.Leader,
			What: "the state is not saved: " + s.Store, Next: "journalctl -u scaffold-controld -n 50  # on " + s.Leader, Count: 1})
	}
	return h
}
