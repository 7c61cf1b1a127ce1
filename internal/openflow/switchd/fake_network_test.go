package switchd

import (
	"bytes"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/userstack"
)

// patience bounds what a test waits for.
const patience = 20 * time.Second

// A fakeNetwork is a controller.Network with switches that punt what is subscribed to, and with cables between
// their ports and stacks that are hosts or other routers.
type fakeNetwork struct {
	t    *testing.T
	todo chan func() // the module's goroutine does them
	done chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	news    func(controller.Switch)
	tick    func()
	try     func()
	deaf    bool // punts nothing
	subs    []subscribed
	at      map[string]controller.Switch
	cables  map[end]stackEnd
	links   map[string][]controller.Link
	changed chan struct{} // closed at the next change of links
}

type subscribed struct {
	controller.Subscription
	f func(controller.Packet)
}

type end struct {
	at   string
	port ofp.Port
}

type stackEnd struct {
	stack *userstack.Stack
	port  string
}

func newFakeNetwork(t *testing.T, m controller.Module) *fakeNetwork {
	n := &fakeNetwork{t: t, todo: make(chan func(), 4096), done: make(chan struct{}), at: map[string]controller.Switch{},
		cables: map[end]stackEnd{}, links: map[string][]controller.Link{}, changed: make(chan struct{})}
	if err := m.Start(n); err != nil {
		t.Fatal(err)
	}
	n.wg.Go(func() {
		for {
			select {
			case f := <-n.todo:
				f()
			case <-n.done:
				return
			}
		}
	})
	t.Cleanup(func() { close(n.done); n.wg.Wait() })
	return n
}

// post has the module's goroutine do f; what is too much is dropped, as the runtime does.
func (n *fakeNetwork) post(f func()) {
	select {
	case n.todo <- f:
	default:
	}
}

// call is post, and waits.
func (n *fakeNetwork) call(f func()) {
	did := make(chan struct{})
	n.todo <- func() { f(); close(did) }
	<-did
}

// set tells of a switch.
func (n *fakeNetwork) set(s controller.Switch) {
	n.mu.Lock()
	n.at[s.Name] = s
	n.mu.Unlock()
	n.call(func() { n.news(s) })
}

// host hangs a stack on a port.
func (n *fakeNetwork) host(at string, port ofp.Port, id byte) *userstack.Stack {
	n.t.Helper()
	var s *userstack.Stack
	s, err := userstack.New(userstack.Config{MAC: [6]byte{2, 0, 0, 0, 0xff, id}, LinkLocal: hostAddr(id),
		Output: func(_ string, frame []byte) { n.arrive(at, port, frame) }})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(s.Close)
	if err := s.AddPort("eth0", 1500); err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.cables[end{at, port}] = stackEnd{s, "eth0"}
	n.mu.Unlock()
	return s
}

func hostAddr(id byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 11: 0xff, 12: 0xfe, 14: 0xff, 15: id})
}

// arrive punts a frame to whoever subscribed to it.
func (n *fakeNetwork) arrive(at string, port ofp.Port, frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var from string
	for _, p := range n.at[at].Ports {
		if p.Number == port && p.Up {
			from = p.Name
		}
	}
	if !n.at[at].Up || from == "" && port != ofp.PortController || n.deaf {
		return
	}
	for _, s := range n.subs {
		if s.Switch == at && matches(s.Match, frame) {
			f, p := s.f, controller.Packet{Switch: at, Port: from, Number: port, Data: bytes.Clone(frame)}
			n.post(func() { f(p) })
			return
		}
	}
}

// matches knows the fields that this package subscribes by.
func matches(m ofp.Match, f []byte) bool {
	if len(f) < 62 {
		return false
	}
	return !slices.ContainsFunc(m, func(o ofp.OXM) bool {
		var is []byte
		switch o.Field {
		case ofp.EthType:
			is = f[12:14]
		case ofp.IPProto:
			is = f[20:21]
		case ofp.IPv6Dst:
			is = f[38:54]
		case ofp.ICMPv6Type:
			is = f[54:55]
		case ofp.NDTarget:
			is = f[62:min(78, len(f))]
		case ofp.UDPDst, ofp.TCPDst:
			is = f[56:58]
		}
		return !bytes.Equal(is, o.Value())
	})
}

func (n *fakeNetwork) HandleSwitches(f func(controller.Switch))      { n.news = f }
func (n *fakeNetwork) HandleHosts(func(controller.Host))             {}
func (n *fakeNetwork) HandleHeld(func(string, uint64))               {}
func (n *fakeNetwork) HandleExpired(func(string, []controller.Flow)) {}

func (n *fakeNetwork) Every(d time.Duration, f func()) {
	if d == helloEvery {
		n.tick = f
	} else {
		n.try = f
	}
}

func (n *fakeNetwork) Subscribe(s controller.Subscription, f func(controller.Packet)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subs = slices.DeleteFunc(n.subs, func(o subscribed) bool { return o.Name == s.Name && o.Switch == s.Switch })
	n.subs = append(n.subs, subscribed{s, f})
	return nil
}

func (n *fakeNetwork) Switches() []controller.Switch {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.at))
}

func (n *fakeNetwork) Send(at string, out controller.Out) error {
	port := out.Actions[0].(controller.Output).Port
	if port == ofp.PortTable {
		n.arrive(at, ofp.PortController, out.Data)
		return nil
	}
	n.mu.Lock()
	to, ok := n.cables[end{at, port}]
	up := n.at[at].Up
	n.mu.Unlock()
	if !up {
		return errors.New("away")
	}
	if ok {
		n.post(func() { to.stack.Deliver(to.port, out.Data) })
	}
	return nil
}

func (n *fakeNetwork) SetLinks(at string, links []controller.Link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[at] = links
	close(n.changed)
	n.changed = make(chan struct{})
	return nil
}

// linksAt waits until a switch's links are as they should be.
func (n *fakeNetwork) linksAt(at string, good func([]controller.Link) bool) {
	n.t.Helper()
	late := time.After(patience)
	for {
		n.mu.Lock()
		links, changed := n.links[at], n.changed
		n.mu.Unlock()
		if good(links) {
			return
		}
		select {
		case <-changed:
		case <-late:
			n.t.Fatalf("links of %s: %+v", at, links)
		}
	}
}

func (n *fakeNetwork) Hosts() []controller.Host                                       { return nil }
func (n *fakeNetwork) Links() []controller.Link                                       { return nil }
func (n *fakeNetwork) Path(string, string) (controller.Path, error)                   { return controller.Path{}, nil }
func (n *fakeNetwork) SetFlows(string, []controller.Flow) error                       { return nil }
func (n *fakeNetwork) ChangeFlows(string, []controller.Flow, []controller.Flow) error { return nil }
func (n *fakeNetwork) Tables(int) ([]uint8, error)                                    { return nil, nil }
func (n *fakeNetwork) Report(subject, text string)                                    { n.t.Errorf("%s: %s", subject, text) }
