package boost

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
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

// sessionsOf takes what an agent says of its sessions. What is none it leaves out: it is an agent's own word, and for people.
func (x *Boost) sessionsOf(a *agent, m *apiv1.BoostSessions) {
	for _, s := range m.GetEnded() {
		delete(a.sessions, sessionKey{s.Far, s.Number})
	}
	for _, s := range m.GetChanged() {
		key := sessionKey{s.Far, s.Number}
		if _, known := a.sessions[key]; !known && len(a.sessions) >= maxSessions || !isAddress(s.Client) || !isAddress(s.Server) || x.agents[s.Far] == nil {
			continue
		}
		if a.sessions == nil {
			a.sessions = map[sessionKey]*apiv1.BoostSession{}
		}
		a.sessions[key] = &apiv1.BoostSession{ // what else is in the message is not kept
			Number: s.Number, Near: a.Name, Far: s.Far, Lane: s.Lane, Client: s.Client, Server: s.Server,
			Sent: s.Sent, Received: s.Received, SendRate: s.SendRate, ReceiveRate: s.ReceiveRate, SinceUnixMs: s.SinceUnixMs,
		}
	}
}

func isAddress(text string) bool {
	a, err := netip.ParseAddrPort(text)
	return err == nil && a.Addr().Zone() == "" // which could be of any length
}

// ListBoostSessions is what agents carry now.
func (a *API) ListBoostSessions(ctx context.Context, req *connect.Request[apiv1.ListBoostSessionsRequest]) (*connect.Response[apiv1.ListBoostSessionsResponse], error) {
	x, m, all := a.x, req.Msg, &apiv1.ListBoostSessionsResponse{}
	var refused error
	var list []carried
	err := x.Loop.Ask(ctx, func() {
		switch {
		case m.Entry != "" && x.entries[m.Entry].Name == "":
			refused = notFound("no entry %.80q of boost", m.Entry)
		case m.Agent != "" && x.agents[m.Agent] == nil:
			refused = notFound("no agent %.80q of boost", m.Agent)
		default:
			list = x.carried(m)
		}
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, orders.Error(err)
	}
	slices.SortFunc(list, func(p, q carried) int {
		return cmp.Or(cmp.Compare(q.SendRate+q.ReceiveRate, p.SendRate+p.ReceiveRate), cmp.Compare(p.SinceUnixMs, q.SinceUnixMs), cmp.Compare(p.Near, q.Near), cmp.Compare(p.Number, q.Number))
	})
	all.Total = uint32(len(list))
	for _, s := range list[:min(len(list), int(cmp.Or(m.Limit, someSessions)))] {
		out := proto.CloneOf(s.BoostSession)
		out.Entry = s.of
		all.Sessions = append(all.Sessions, out)
	}
	return connect.NewResponse(all), nil
}

// carried is a session and its entry. Nobody changes the message: news of a session are another one. So it may be read, and
// many be sorted, outside the loop.
type carried struct {
	*apiv1.BoostSession
	of string
}

// carried are the sessions that are asked for.
func (x *Boost) carried(m *apiv1.ListBoostSessionsRequest) (list []carried) {
	entry := map[uint64]string{}
	for i := range x.lanes {
		entry[x.lanes[i].Number] = x.lanes[i].Entry
	}
	for _, a := range x.agents {
		for _, s := range a.sessions {
			of := entry[s.Lane]
			if m.Entry != "" && of != m.Entry || m.Agent != "" && m.Agent != s.Near && m.Agent != s.Far {
				continue
			}
			list = append(list, carried{s, of})
		}
	}
	return list
}
