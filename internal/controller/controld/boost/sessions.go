package boost

import (
	"cmp"
	"context"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/tune"
)

const (
	// maxSessions is how many of an agent's sessions are known one by one.
	maxSessions = 1 << 16
	// someSessions is how many are listed where nobody says how many.
	someSessions = 100
)

// A sessionKey is a session's at its near agent.
type sessionKey struct {
	far    string
	number uint64
}

// carried is a session as its near agent tells it. Nobody changes the message: news of a session are another one. So it may
// be read, and many be sorted, outside the loop.
type carried struct {
	*apiv1.BoostSession
	of    lane.Session
	waits waitsFor // at its near end
}

// sessionsOf takes what an agent says of its sessions. What is none it leaves out: it is an agent's own word.
func (x *Boost) sessionsOf(a *agent, m *apiv1.BoostSessions) {
	if !a.retold { // all that there are
		a.retold, a.sessions, a.waits, x.switches.changed = true, nil, nil, true
	}
	x.waitsAt(a, m.GetWaits())
	for _, s := range m.GetEnded() {
		key := sessionKey{s.Far, s.Number}
		if x.switches.crowd || x.switches.pinned[a.sessions[key].of] {
			x.switches.changed = true
		}
		delete(a.sessions, key)
		x.stale = x.stale || x.kept
	}
	for _, s := range m.GetChanged() {
		x.sessionOf(a, s)
	}
}

func (x *Boost) sessionOf(a *agent, s *apiv1.BoostSession) {
	key := sessionKey{s.Far, s.Number}
	was, known := a.sessions[key]
	client, err := lane.ParseEnd(s.Client)
	server, err2 := lane.ParseEnd(s.Server)
	if !known && len(a.sessions) >= maxSessions || err != nil || err2 != nil || x.agents[s.Far] == nil {
		return
	}
	l, planned := x.switches.lanes[s.Lane]
	// One whose client is not there yet is what its lane is; one that was steered before its lane was rewritten has its client.
	rewritten := s.Rewritten || s.Opening && planned && l.Rewrite
	now := lane.Session{Lane: s.Lane, Client: client, Server: server, Near: a.Name, Far: s.Far}
	if fresh := !known || was.of != now; (fresh || was.Rewritten) && !rewritten && (!planned || !l.Kept(&now)) || !fresh && !was.Rewritten && rewritten {
		x.switches.changed = true // it needs rules of its own, or needs them no more
	}
	if a.sessions == nil {
		a.sessions = map[sessionKey]carried{}
	}
	waits := waitsFrom(s.NearWaits)
	a.sessions[key] = carried{&apiv1.BoostSession{ // what else is in the message is not kept
		Number: s.Number, Near: a.Name, Far: s.Far, Lane: s.Lane, Client: s.Client, Server: s.Server,
		Sent: s.Sent, Received: s.Received, SendRate: s.SendRate, ReceiveRate: s.ReceiveRate, SinceUnixMs: s.SinceUnixMs,
		NearWaits: waits.message(), Rewritten: rewritten,
	}, now, waits}
}

// ListBoostSessions is what agents carry now.
func (a *API) ListBoostSessions(ctx context.Context, req *connect.Request[apiv1.ListBoostSessionsRequest]) (*connect.Response[apiv1.ListBoostSessionsResponse], error) {
	x, m, all := a.x, req.Msg, &apiv1.ListBoostSessionsResponse{}
	var list []listed
	client, refused := endNamed(m.Client)
	server, err := endNamed(m.Server)
	farAt, err2 := endNamed(m.FarAt)
	if err = cmp.Or(refused, err, err2); err != nil {
		return nil, invalid("sessions of the client %.80q, the server %.80q and the agent's end %.80q: expected an address, with a port or without, as in 192.0.2.1 or [2001:db8::1]:80", m.Client, m.Server, m.FarAt)
	}
	err = x.Loop.Ask(ctx, func() {
		switch {
		case m.Entry != "" && x.entries[m.Entry].Name == "":
			refused = notFound("no entry %.80q of boost", m.Entry)
		case m.Agent != "" && x.agents[m.Agent] == nil:
			refused = notFound("no agent %.80q of boost", m.Agent)
		default:
			list = x.carried(m, client, server, farAt)
		}
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, orders.Error(err)
	}
	slices.SortFunc(list, func(p, q listed) int {
		return cmp.Or(cmp.Compare(q.SendRate+q.ReceiveRate, p.SendRate+p.ReceiveRate), cmp.Compare(p.SinceUnixMs, q.SinceUnixMs), cmp.Compare(p.Near, q.Near), cmp.Compare(p.Number, q.Number))
	})
	all.Total = uint32(len(list))
	for _, s := range list[:min(len(list), int(cmp.Or(m.Limit, someSessions)))] {
		out := proto.CloneOf(s.BoostSession)
		out.Entry, out.FarWaits = s.entry, s.far.message()
		if s.far.at.IsValid() {
			out.FarAt = s.far.at.String()
		}
		s.bound(out)
		all.Sessions = append(all.Sessions, out)
	}
	return connect.NewResponse(all), nil
}

// A listed is a session, its entry, and what else is known where it is listed.
type listed struct {
	*apiv1.BoostSession
	entry             string
	far               waitsFor
	nearLoad, farLoad *apiv1.BoostLoad // as the agents told them, which nobody changes
}

// bound says what binds a session, in the words of its near agent and its far one.
func (l *listed) bound(out *apiv1.BoostSession) {
	sent, received := bindings(waitsFrom(l.NearWaits), l.far, l.nearLoad.GetLoad(), l.farLoad.GetLoad())
	out.SentBound, out.ReceivedBound = sent.At(nearEnd, farEnd), received.At(farEnd, nearEnd)
	if sent == tune.Between {
		out.SentPath = pathTo(l.Far, l.nearLoad)
	}
	if received == tune.Between {
		out.ReceivedPath = pathTo(l.Near, l.farLoad)
	}
}

// carried are the sessions that are asked for.
func (x *Boost) carried(m *apiv1.ListBoostSessionsRequest, client, server, farAt end) (list []listed) {
	entry := map[uint64]string{}
	for _, l := range slices.Concat(x.lanes, x.named) {
		entry[l.Number] = l.Entry
	}
	for _, a := range x.agents {
		if a.session == nil {
			continue // nobody knows what it carries now
		}
		for _, s := range a.sessions {
			of := entry[s.Lane]
			if m.Entry != "" && of != m.Entry || m.Agent != "" && m.Agent != s.Near && m.Agent != s.Far || !client.is(s.of.Client) || !server.is(s.of.Server) {
				continue
			}
			l := listed{BoostSession: s.BoostSession, entry: of, nearLoad: a.load}
			l.far, l.farLoad = x.atFar(s)
			if m.FarAt != "" && !farAt.is(l.far.at) {
				continue
			}
			list = append(list, l)
		}
	}
	return list
}
