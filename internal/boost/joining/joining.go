package joining

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/tune"
)

// tellEach is how often the controller hears how the agent fares: it chooses by that where a new lane goes.
const tellEach = 500 * time.Millisecond

// A Peer is another agent as the controller knows it.
type Peer struct {
	agent.Peer
	Key ed25519.PublicKey
}

// Agent is the one that is told what to do.
type Agent interface {
	// Tell replaces which agents there are and which lanes.
	Tell(peers []Peer, lanes []agent.Lane) error
	// Drain says whether new connections are refused.
	Drain(bool)
	Trunks() map[string]trunk.Status
	// EachSession calls f with each session and the agent at its other end. f is quick, and calls nothing of the agent.
	EachSession(f func(other string, s trunk.SessionStatus))
	Load() float64 // of what it can carry, 0 to 1
	// Stops are the versions of IP, 4 and 6, of which its machine forwards nothing now.
	Stops() []uint32
}

// Legs are the agent's connections that switches rewrite.
type Legs interface {
	Use(send func(*apiv1.BoostReport))
	First(*apiv1.BoostSYN)
	Ready(*apiv1.BoostLegReady)
	Know(trunk.SessionStatus)
	Sweep(each func(func(other string, s trunk.SessionStatus)))
	All() []*apiv1.BoostLeg
}

// Keys are those by which other agents know this one.
type Keys interface {
	Key() ed25519.PublicKey        // the one that it has
	Take(ed25519.PrivateKey) error // another one: it has joined with it
}

// sweepEach is how often it is looked which legs have no session.
const sweepEach = 5 * time.Second

// A Config is who joins, and by which way.
type Config struct {
	Name        string
	Doors       []netip.AddrPort // all its addresses, that of its door first
	Keys        Keys
	KeyFor      time.Duration // how long a key is kept in a network with keys; 0: for good
	BootID      string        // of this process
	Version     string
	Controllers *api.Controllers
	Credentials *member.Credentials // nil: in the clear
	Agent       Agent
	Legs        Legs             // nil: it knows no lanes that are rewritten
	Announce    func(key []byte) // is told the key under which the agent announces itself from now on; quick. nil: nobody is
	// Told is what a process before this one was told last, as Remember was given it: this one does it before it joins.
	Told     []byte
	Remember func([]byte)
	Log      *slog.Logger
}

type asAgent = member.Member[*apiv1.BoostReport, *apiv1.BoostOrder, *apiv1.BoostJoined]
type session = member.Session[*apiv1.BoostReport]

// A joiner holds sessions, one at a time.
type joiner struct {
	Config
	mu   sync.Mutex
	held []*apiv1.BoostLane // as told last
	told uint64             // their generation
	in   *session
	at   string            // the controller's endpoint
	with ed25519.PublicKey // which is asked for in

	telling  sync.Mutex
	sessions *teller // of the session that is held

	reports sync.WaitGroup
}

// Run keeps the agent in its network until ctx ends, and says once why it is not.
func Run(ctx context.Context, c Config) {
	j := &joiner{Config: c}
	defer j.reports.Wait() // they ask the agent, which may end after this
	j.recall()
	if c.Credentials != nil {
		j.reports.Go(func() { c.Credentials.Keep(ctx, c.KeyFor, c.Log, j.rotate) })
	}
	j.member().Stay(ctx, member.Stay{Credentials: c.Credentials, Log: c.Log, Meanwhile: "what was told last holds", Tries: j.tries}, j.ask)
}

// member is the agent as its controllers know it.
func (j *joiner) member() *asAgent {
	return &asAgent{
		Who: "this agent", Controllers: j.Controllers, Epoch: (*apiv1.BoostJoined).GetEpoch,
		Open: func(ctx context.Context, client *http.Client, base string) member.Stream[*apiv1.BoostReport, *apiv1.BoostOrder] {
			return apiv1connect.NewBoostStreamClient(client, base).Agent(ctx)
		},
		Joined: j.begin, Order: j.obey,
		Parted: func(*session) { j.useLegs(nil); j.session(nil) },
	}
}

// ask is the first report of a session.
func (j *joiner) ask(context.Context) (*apiv1.BoostReport, error) {
	key, err := j.key()
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.with = key
	speaks := versions.Agent()
	var doors []string
	for _, d := range j.Doors {
		doors = append(doors, d.String())
	}
	return &apiv1.BoostReport{Report: &apiv1.BoostReport_Join{Join: &apiv1.BoostJoin{
		Name: j.Name, Door: doors[0], Doors: doors, Key: key, BootId: j.BootID, Version: j.Version,
		Speaks: &apiv1.Versions{From: speaks.From, To: speaks.To}, Held: j.held, Generation: j.told, Names: true,
		Rewrites: j.Legs != nil, Legs: j.legs(), Stops: j.Agent.Stops(),
	}}}, nil
}

// legs are all that the agent has: a process before this one may have had some.
func (j *joiner) legs() []*apiv1.BoostLeg {
	if j.Legs == nil {
		return nil
	}
	j.Agent.EachSession(func(_ string, s trunk.SessionStatus) { j.Legs.Know(s) })
	return j.Legs.All()
}

// useLegs says by which session the controller hears of legs from now on; nil: by none.
func (j *joiner) useLegs(s *session) {
	switch {
	case j.Legs == nil:
	case s == nil:
		j.Legs.Use(nil)
	default:
		j.Legs.Use(func(m *apiv1.BoostReport) { s.Send(m) })
	}
}

func (j *joiner) session(s *session) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.in = s
}

func (j *joiner) begin(ctx context.Context, s *session, joined *apiv1.BoostJoined) error {
	j.session(s)
	j.succeed()
	j.Log.Info("joined", "network", joined.Network)
	if joined.Trust == "open" {
		j.Log.Warn("the network is open: anybody who reaches it may join it, and say what this agent carries (trust: open)", "network", joined.Network)
	}
	j.renew(joined.Credential)
	if j.Announce != nil && len(joined.AnnounceKey) == announce.KeyLen { // a controller of before has none: the last one holds
		j.Announce(joined.AnnounceKey)
	}
	j.useLegs(s)
	j.telling.Lock()
	j.sessions = newTeller(time.Now())
	j.telling.Unlock()
	j.reports.Go(func() { j.report(ctx, s) }) // ends with the session, whose end ends ctx
	return nil
}

// report tells how the agent fares until the session ends.
func (j *joiner) report(ctx context.Context, s *session) {
	tick := time.NewTicker(tellEach)
	defer tick.Stop()
	for swept, looked := time.Now(), time.Now(); ; {
		if j.Legs != nil && time.Since(swept) >= sweepEach {
			j.Legs.Sweep(j.Agent.EachSession)
			swept = time.Now()
		}
		if time.Since(looked) >= lookEach {
			j.reload(s)
			looked = time.Now()
		}
		s.Send(&apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: j.load()}})
		j.tellSessions(s)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellSessions tells what has changed of the agent's sessions, in as many reports as that takes; those that change all the
// time do not keep it going.
func (j *joiner) tellSessions(s *session) {
	j.telling.Lock()
	defer j.telling.Unlock()
	for range mostTold/mostChanges + 1 {
		changed := j.sessions.look(time.Now(), j.Agent.EachSession)
		if changed == nil {
			return
		}
		s.Send(&apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: changed}})
		if max(len(changed.Changed)+len(changed.Ended), len(changed.Waits)) < mostChanges {
			return
		}
	}
}

func (j *joiner) load() *apiv1.BoostLoad {
	trunks := j.Agent.Trunks()
	all := &apiv1.BoostLoad{Load: j.Agent.Load(), Stops: j.Agent.Stops()}
	for _, name := range slices.Sorted(maps.Keys(trunks)) {
		t := trunks[name]
		all.Sessions += uint32(t.Sessions)
		all.Trunks = append(all.Trunks, &apiv1.BoostTrunk{
			Agent: name, Up: t.Up, Connections: uint32(t.Connections), Sessions: uint32(t.Sessions), RttUs: uint32(t.RTT.Microseconds()),
			Sent: t.Counts.First + t.Counts.Again + t.Counts.Copy + t.Counts.Late, Resent: t.Counts.Again + t.Counts.Copy + t.Counts.Late,
			Path: pathOf(t.Path), Ways: waysOf(t.Paths), Moved: t.Moves.Made, NotMoved: t.Moves.Failed,
		})
	}
	return all
}

// waysOf is how paths fare, as messages.
func waysOf(all []trunk.PathStatus) (list []*apiv1.BoostWay) {
	for _, p := range all {
		list = append(list, &apiv1.BoostWay{
			Own: p.Own.String(), Other: p.Other.String(), Up: p.Up, Connections: uint32(p.Connections), RttUs: uint32(p.RTT.Microseconds()),
			Sent: p.Sent, Received: p.Received, Path: pathOf(p.Path), Why: p.Why, SinceUnixMs: p.Since.UnixMilli(),
		})
	}
	return list
}

// pathOf is what of a path binds, as a message; nil: nothing that is clear.
func pathOf(v tune.Verdict) *apiv1.BoostPath {
	if v.Cause == tune.NoCause {
		return nil
	}
	return &apiv1.BoostPath{Bound: v.Cause.String(), Rate: uint64(v.Rate), Loss: v.Loss, Held: v.Held, Connections: uint32(v.Flows)}
}

// obey does what the controller orders.
func (j *joiner) obey(order *apiv1.BoostOrder) error {
	switch o := order.Order.(type) {
	case *apiv1.BoostOrder_Credential:
		j.renew(o.Credential)
	case *apiv1.BoostOrder_Lanes:
		j.take(o.Lanes)
	case *apiv1.BoostOrder_Syn:
		if j.Legs != nil {
			j.Legs.First(o.Syn)
		}
	case *apiv1.BoostOrder_LegReady:
		if j.Legs != nil {
			j.Legs.Ready(o.LegReady)
		}
	}
	return nil
}

// take has the agent do what it is told, and says what came of it. What cannot be read changes nothing.
func (j *joiner) take(told *apiv1.BoostLanes) {
	peers, lanes, err := decode(told)
	if err == nil {
		err = j.Agent.Tell(peers, lanes)
	}
	applied := &apiv1.BoostApplied{Generation: told.Generation}
	if err == nil {
		j.remember(told)
		j.Agent.Drain(told.Draining)
		j.Log.Debug("lanes", "lanes", len(lanes), "agents", len(peers), "draining", told.Draining)
	} else {
		applied.Error = err.Error()
		j.Log.Error("what the controller tells cannot be done; what was told before holds", "error", err)
	}
	j.mu.Lock()
	if err == nil {
		j.held, j.told = told.Lanes, told.Generation
	}
	s := j.in
	j.mu.Unlock()
	if s != nil {
		// A switch stops to send a lane's connections here once it is given up, but for those that the controller knows.
		j.tellSessions(s)
		s.Send(&apiv1.BoostReport{Report: &apiv1.BoostReport_Applied{Applied: applied}})
	}
}

func (j *joiner) remember(told *apiv1.BoostLanes) {
	if j.Remember == nil {
		return
	}
	if b, err := proto.Marshal(told); err == nil {
		j.Remember(b)
	}
}

// recall does what a process before this one was told: whatever its sessions need is there before a controller is.
func (j *joiner) recall() {
	if len(j.Told) == 0 {
		return
	}
	var told apiv1.BoostLanes
	if err := proto.Unmarshal(j.Told, &told); err != nil {
		j.Log.Warn("what this agent was told before cannot be read", "error", err)
		return
	}
	j.take(&told)
}

// renew keeps a credential that the controller sent.
func (j *joiner) renew(fresh *apiv1.Credential) {
	if j.Credentials == nil || fresh == nil {
		return
	}
	if err := j.Credentials.Take(fresh); err != nil {
		j.Log.Error("credential", "error", err)
	}
}

// errKey says that another agent's key is none.
var errKey = errors.New("its key is none of Ed25519")

// decode reads what the controller tells.
func decode(told *apiv1.BoostLanes) (peers []Peer, lanes []agent.Lane, err error) {
	for _, p := range told.Agents {
		out, err := decodePeer(p)
		if err != nil {
			return nil, nil, fmt.Errorf("agent %.80q: %w", p.Name, err)
		}
		peers = append(peers, out)
	}
	for _, l := range told.Lanes {
		out, err := decodeLane(l)
		if err != nil {
			return nil, nil, fmt.Errorf("lane %d: %w", l.Number, err)
		}
		lanes = append(lanes, out)
	}
	return peers, lanes, nil
}

// decodePeer reads who another agent is. One of before says no more than its door, and so does a controller of before.
func decodePeer(p *apiv1.BoostPeer) (out Peer, err error) {
	out = Peer{agent.Peer{Name: p.Name, Former: len(p.Doors) == 0}, p.Key}
	if len(p.Key) != ed25519.PublicKeySize {
		return out, errKey
	}
	out.Door, err = netip.ParseAddrPort(p.Door)
	for i, text := range p.Doors {
		at, wrong := netip.ParseAddrPort(text)
		if wrong != nil {
			return out, wrong
		}
		if i > 0 {
			out.More = append(out.More, at)
		}
	}
	return out, err
}

// errRange says that a number of a lane is larger than it may be.
var errRange = errors.New("a port, or a slot of the port's bits, is larger than 65535, or 16")

func decodeLane(l *apiv1.BoostLane) (out agent.Lane, err error) {
	if max(l.Port, l.Slot) > 65535 || l.Bits > 16 {
		return out, errRange
	}
	out = agent.Lane{Number: l.Number, Port: uint16(l.Port), Slot: uint16(l.Slot), Bits: uint8(l.Bits), Near: append([]string{l.Near}, l.AlsoNear...), Far: l.Far, AtOnce: l.AtOnce, Named: l.Named, Rewrite: l.Rewrite}
	if out.Client, err = netip.ParsePrefix(l.Client); err == nil {
		out.Server, err = netip.ParsePrefix(l.Server)
	}
	return out, err
}
