package switchd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A fakePlane is switches that take everything, and an audience's events.
type fakePlane struct {
	mu    sync.Mutex
	there map[string]controller.Switch
	flows map[string]map[owner][]ownFlow
	calls map[string]map[owner]uint64
	links map[string]map[owner][]controller.Link
	sent  []controller.Out
	said  []string // kind, subject: text
	lend  map[string]*ofconn.Conn
	state []condition
	split map[string][]share
}

func newFakePlane(names ...string) *fakePlane {
	p := &fakePlane{there: map[string]controller.Switch{}, flows: map[string]map[owner][]ownFlow{}, calls: map[string]map[owner]uint64{}, links: map[string]map[owner][]controller.Link{}}
	for i, name := range names {
		p.there[name] = controller.Switch{Name: name, Datapath: uint64(i + 1), Version: "1.5", Up: true, Ports: []controller.Port{{Name: "to-" + name, Number: ofp.Port(i + 1)}}}
	}
	return p
}

func (p *fakePlane) switches() []controller.Switch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return byKey(p.there)
}

func (p *fakePlane) setFlows(of owner, at string, flows []ownFlow, calls uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flows[at] == nil {
		p.flows[at], p.calls[at] = map[owner][]ownFlow{}, map[owner]uint64{}
	}
	p.calls[at][of] = calls
	p.flows[at][of] = flows
	if len(flows) == 0 {
		delete(p.flows[at], of)
	}
	return nil
}

func (p *fakePlane) changeFlows(of owner, at string, set, unset []ownFlow, calls uint64) error {
	flows := slices.DeleteFunc(p.at(at, of), func(f ownFlow) bool {
		return slices.ContainsFunc(append(set[:len(set):len(set)], unset...), func(o ownFlow) bool { return keyOf(o.Flow) == keyOf(f.Flow) })
	})
	return p.setFlows(of, at, append(flows, set...), calls)
}

func (p *fakePlane) send(at string, out controller.Out) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, out)
	return nil
}

func (p *fakePlane) setLinks(of owner, at string, links []controller.Link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[at] == nil {
		p.links[at] = map[owner][]controller.Link{}
	}
	p.links[at][of] = links
	if len(links) == 0 {
		delete(p.links[at], of)
	}
	return nil
}

func (p *fakePlane) ask(_ context.Context, at string, f func(*ofconn.Conn) error) error {
	c, ok := p.lend[at]
	if !ok {
		return errors.New("switch " + at + " is not connected")
	}
	return f(c)
}

func (p *fakePlane) conditions() []condition { return p.state }

func (p *fakePlane) shares(at string) []share { return p.split[at] }

// at are an owner's flows at a switch.
func (p *fakePlane) at(name string, of owner) []ownFlow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.flows[name][of])
}

// owners are those who have flows at a switch.
func (p *fakePlane) owners(name string) []owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.flows[name]))
}

func (p *fakePlane) event(kind, subject, text string, _ ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, kind+" "+subject+": "+text)
}

func (p *fakePlane) events() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

func (*fakePlane) hosts() []controller.Host { return []controller.Host{{Name: "h1", State: "up"}} }

// A fakeMind knows one host and one way.
type fakeMind struct{ *fakePlane }

func (fakeMind) links() []controller.Link { return []controller.Link{{Router: "s1", Peer: "s2"}} }

func (fakeMind) path(_ context.Context, from, to string) (controller.Path, error) {
	return controller.Path{Hops: []controller.Hop{{Router: from}, {Router: to}}}, nil
}

// A scripted module is what a test makes of it.
type scripted struct {
	name  string
	start func(controller.Network) error
}

func (s scripted) Name() string                     { return s.name }
func (s scripted) Start(n controller.Network) error { return s.start(n) }

// A stage has modules running at switches s1 and s2, in a bubble.
type stage struct {
	*fakePlane
	ms *modules
	t  *testing.T
}

// perform runs the modules, the first as owner 16, in a bubble, and test beside them.
func perform(t *testing.T, test func(*stage), mods ...scripted) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{fakePlane: newFakePlane("s1", "s2"), t: t}
		s.ms = newModules(s.fakePlane, fakeMind{s.fakePlane}, s.fakePlane, slog.New(slog.DiscardHandler))
		for i, m := range mods {
			if err := s.ms.add(ownOthers+owner(i), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, sw := range s.fakePlane.switches() {
			s.ms.changed(sw)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.ms.run(ctx) }()
		synctest.Wait()
		test(s)
		cancel()
		<-done
	})
}

// punt has a switch punt a packet as an owner's rule number i says.
func (s *stage) punt(at string, of owner, i int, data string) {
	s.t.Helper()
	flows := slices.DeleteFunc(s.at(at, of), func(f ownFlow) bool { return !f.Punt })
	if i >= len(flows) {
		s.t.Fatalf("%s punts nothing for owner %d: %+v", at, of, flows)
	}
	s.ms.punted(of, flows[i].ID, controller.Packet{Switch: at, Port: "p", Number: 1, Data: []byte(data)})
}
