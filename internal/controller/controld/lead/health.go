package lead

import (
	"context"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/operate/verdict"
)

// leaderAnswers bounds what a controller that stands by waits for the one that leads: `scaffold status` is to answer
// within a second, also where that one has just died.
const leaderAnswers = 700 * time.Millisecond

// GetHealth asks the controller that leads, and adds what this one sees; alone it says that.
func (a *standbyAdmin) GetHealth(ctx context.Context, req *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	answer := a.c.OwnHealth()
	if req.Msg.Own {
		return connect.NewResponse(answer), nil
	}
	own := verdict.ToAPI(a.c.Watch.Problems(ctx))
	if l := a.c.Peers.Leader(); l != nil && l.Name != a.c.cfg.Name && req.Header().Get(gate.HandedOn) == "" && (a.c.Gate == nil || a.c.Gate.Ready()) {
		if theirs, err := a.c.askLeader(ctx); err == nil {
			theirs.Asked = answer.Asked
			theirs.Problems = verdict.Merge(theirs.Problems, own)
			return connect.NewResponse(theirs), nil
		} else if code := connect.CodeOf(err); code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied {
			return nil, err
		}
		answer.Trouble = "controller " + l.Name + ", which leads, does not answer"
	}
	answer.Problems = own
	return connect.NewResponse(answer), nil
}

// askLeader asks in the name of who asks us.
func (c *Process) askLeader(ctx context.Context) (*apiv1.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderAnswers)
	defer cancel()
	at, _ := c.reached(ctx)
	if at == "" {
		return nil, connect.NewError(connect.CodeUnavailable, c.noLeader())
	}
	ask := connect.NewRequest(new(apiv1.GetHealthRequest))
	ask.Header().Set(gate.HandedOn, c.cfg.Name)
	ask.Header().Set(gate.OnBehalf, gate.PeerOf(ctx).Header())
	h, err := c.others().GetHealth(context.WithValue(ctx, onwardKey{}, at), ask)
	if err != nil {
		return nil, err
	}
	return h.Msg, nil
}

// OwnHealth is what this controller knows of itself without asking anybody.
func (c *Process) OwnHealth() *apiv1.Health {
	h := &apiv1.Health{Asked: c.cfg.Name, Role: "controller", Version: obs.Version(), NowUnixMs: time.Now().UnixMilli()}
	if c.store.Elected() {
		if l := c.Peers.Leader(); l != nil {
			h.Leader = l.Name
		}
	} else if c.term.Load() != nil {
		h.Leader = c.cfg.Name
	}
	if free, needed, ok := c.store.Disk(); ok {
		h.Disk = &apiv1.Disk{Dir: c.store.String(), Free: free, Needed: needed, Total: c.store.Capacity(), Failing: c.store.Broken(),
			Damaged: c.store.Damaged(), Applied: c.store.Applied()}
	}
	return h
}
