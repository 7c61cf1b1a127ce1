package boostd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/internal/boost/announce"
)

// A sent is an announcement as it left.
type sent struct {
	ifindex int
	port    string
	mac     byte // the last of it
	after   time.Duration
	made    uint64
	key     byte // which one proves it
}

// ported is an announcer in virtual time, with ports that a test changes between seconds.
type ported struct {
	t     *testing.T
	a     *announcer
	log   strings.Builder
	began time.Time

	mu    sync.Mutex // a tick of the virtual clock does not order what a test wrote before it
	ports map[string]net.Interface
	fails error // of sending
	all   []sent
}

func keyOf(n byte) []byte { return bytes.Repeat([]byte{n}, announce.KeyLen) }

func up(index int, mac byte) net.Interface {
	return net.Interface{Index: index, Flags: net.FlagUp, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, mac}}
}

// announcing runs f while an announcer of the ports p0 and p1 runs.
func announcing(t *testing.T, f func(p *ported)) {
	synctest.Test(t, func(t *testing.T) {
		p := &ported{t: t, ports: map[string]net.Interface{"p0": up(1, 10), "p1": up(2, 20)}, began: time.Now()}
		p.a = newAnnouncer(Settings{Name: "w1", Ports: []string{"p0", "p1"}}, nil, slog.New(slog.NewTextHandler(&p.log, nil)))
		p.a.look, p.a.send = p.look, p.send
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait() // run ends with ctx: synctest.Test fails otherwise
		defer stop()
		go p.a.run(ctx)
		f(p)
	})
}

// change has the ports be otherwise from now on.
func (p *ported) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *ported) look(name string) (*net.Interface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.ports[name]
	if !ok {
		return nil, errors.New("no such network interface")
	}
	return &i, nil
}

func (p *ported) send(ifindex int, frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	a, err := announce.Parse(frame)
	if err != nil || a.Agent != "w1" {
		p.t.Errorf("%+v, %v", a, err)
	}
	s := sent{ifindex: ifindex, port: a.Port, mac: a.MAC[5], after: time.Since(p.began), made: a.Made}
	for n := range byte(10) {
		if a.Proves(keyOf(n)) {
			s.key = n
		}
	}
	p.all = append(p.all, s)
	return nil
}

// after is what was sent in so much time.
func (p *ported) after(d time.Duration) []sent {
	time.Sleep(d) // of synctest's clock
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

func (p *ported) want(what string, got []sent, want ...sent) {
	p.t.Helper()
	if !reflect.DeepEqual(got, want) {
		p.t.Errorf("%s:\n%+v\nwant\n%+v", what, got, want)
	}
}

func (p *ported) said(text string) int { return strings.Count(p.log.String(), text) }

func TestAnAgentIsAnnouncedAtEachPortEachSecond(t *testing.T) {
	announcing(t, func(p *ported) {
		p.want("without a key", p.after(9500*time.Millisecond))
		const at = 9500 * time.Millisecond
		p.a.use(keyOf(1))
		p.want("at once", p.after(0), sent{1, "p0", 10, at, 1, 1}, sent{2, "p1", 20, at, 2, 1})
		p.want("in two seconds", p.after(2*time.Second), sent{1, "p0", 10, at + time.Second, 3, 1}, sent{2, "p1", 20, at + time.Second, 4, 1},
			sent{1, "p0", 10, at + 2*time.Second, 5, 1}, sent{2, "p1", 20, at + 2*time.Second, 6, 1})
	})
}

func TestTheNewestKeyCountsAtOnce(t *testing.T) {
	announcing(t, func(p *ported) {
		p.a.use(keyOf(1))
		p.after(0)
		time.Sleep(500 * time.Millisecond)
		p.a.use(keyOf(2)) // its stream ended before anything was announced
		p.a.use(keyOf(3))
		got := p.after(0)
		if n := len(got); n < 2 || got[n-1].key != 3 || got[n-2].key != 3 {
			t.Fatalf("%+v", got)
		}
		made := uint64(2)
		for _, s := range append(got, p.after(time.Second)...) {
			if s.made <= made {
				t.Errorf("number %d after %d", s.made, made)
			}
			made = s.made
		}
	})
}

func TestPortsAreAsTheyAreNow(t *testing.T) {
	const why = "level=WARN"
	announcing(t, func(p *ported) {
		p.a.use(keyOf(1))
		p.after(0)
		p.change(func() {
			p.ports["p0"] = net.Interface{Index: 1, HardwareAddr: up(1, 10).HardwareAddr}
			delete(p.ports, "p1")
		})
		p.want("one down, one gone", p.after(5*time.Second))
		if p.said(why) != 2 || p.said("it is down") != 1 || p.said("no such network interface") != 1 {
			t.Errorf("in five seconds it was said:\n%s", p.log.String())
		}
		p.change(func() { p.ports["p0"], p.ports["p1"] = up(1, 11), up(7, 20) })
		p.want("back, otherwise", p.after(time.Second), sent{1, "p0", 11, 6 * time.Second, 3, 1}, sent{7, "p1", 20, 6 * time.Second, 4, 1})
		p.change(func() { p.fails = errors.New("no buffers") })
		p.after(3 * time.Second)
		if p.said("again") != 2 || p.said("no buffers") != 2 {
			t.Errorf("back, and then sending fails:\n%s", p.log.String())
		}
		p.change(func() { p.fails = nil })
		if got := p.after(time.Second); len(got) != 2 || got[0].made <= 4 {
			t.Errorf("a number came twice: %+v", got)
		}
		p.change(func() { p.ports["p1"] = net.Interface{Index: 2, Flags: net.FlagUp} })
		if got := p.after(time.Second); len(got) != 1 || p.said(errNoEthernet.Error()) != 1 {
			t.Errorf("%+v\n%s", got, p.log.String())
		}
	})
}

func TestAnAgentWhoseNameCannotBeSaidRunsOn(t *testing.T) {
	announcing(t, func(p *ported) {
		p.a.name = strings.Repeat("w", announce.MaxName+1)
		p.a.use(keyOf(1))
		if got := p.after(time.Second); got != nil || p.said("expected 1 to 63 bytes") != 2 {
			t.Errorf("%v\n%s", got, p.log.String())
		}
	})
}
