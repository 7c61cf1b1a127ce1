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

// tell takes what an agent says of its sessions. What is none it leaves out: it is an agent's own word, and for people.
func (a *agent) tell(m *apiv1.BoostSessions) {
	for _, s := range m.GetEnded() {
		delete(a.sessions, sessionKey{s.Far, s.Number})
	}
	for _, s := range m.GetChanged() {
		key := sessionKey{s.Far, s.Number}
		if _, known := a.sessions[key]; !known && len(a.sessions) >= maxSessions || !isAddress(s.Client) || !isAddress(s.Server) || len(s.Far) > maxText {
			continue
		}
		if a.sessions == nil {
			a.sessions = map[sessionKey]*apiv1.BoostSession{}
		}
		s.Near, s.Entry = a.Name, ""
		a.sessions[key] = s
	}
}

func isAddress(text string) bool {
	_, err := netip.ParseAddrPort(text)
	return err == nil
}

// ListBoostSessions is what agents carry now.
func (a *API) ListBoostSessions(ctx context.Context, req *connect.Request[apiv1.ListBoostSessionsRequest]) (*connect.Response[apiv1.ListBoostSessionsResponse], error) {
	x, m, all := a.x, req.Msg, &apiv1.ListBoostSessionsResponse{}
	var refused error
	err := x.Loop.Ask(ctx, func() {
		switch {
		case m.Entry != "" && x.entries[m.Entry].Name == "":
			refused = notFound("no entry %.80q of boost", m.Entry)
		case m.Agent != "" && x.agents[m.Agent] == nil:
			refused = notFound("no agent %.80q of boost", m.Agent)
		default:
			all.Sessions = x.carried(m)
		}
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, orders.Error(err)
	}
	slices.SortFunc(all.Sessions, func(p, q *apiv1.BoostSession) int {
		return cmp.Or(cmp.Compare(q.SendRate+q.ReceiveRate, p.SendRate+p.ReceiveRate), cmp.Compare(p.SinceUnixMs, q.SinceUnixMs), cmp.Compare(p.Near, q.Near), cmp.Compare(p.Number, q.Number))
	})
	all.Total = uint32(len(all.Sessions))
	if most := int(cmp.Or(m.Limit, someSessions)); len(all.Sessions) > most {
		all.Sessions = all.Sessions[:most]
	}
	return connect.NewResponse(all), nil
}

// carried are copies of the sessions that are asked for.
func (x *Boost) carried(m *apiv1.ListBoostSessionsRequest) (list []*apiv1.BoostSession) {
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
			s := proto.CloneOf(s)
			s.Entry = of
			list = append(list, s)
		}
	}
	return list
}
