package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// pairs is a network of its own whose parts are taken away.
type pairs struct {
	*network
	to             netip.AddrPort
	client, server *nstest.NS              // c1 and s1
	programs       map[string]*nstest.Proc // by host
	flows          map[string]net.Conn     // to s1 and s2
	dead           map[string]part         // what is away
	port           uint16                  // the last that was listened at

	asked   atomic.Int32   // questions by UDP
	running sync.WaitGroup // attempts
	cancels []func()
}

// lines is a server of both protocols that answers a line, or a datagram, with its host's name before it.
const lines = `
import socket, sys, threading
host, addr = sys.argv[1].encode() + b" ", sys.argv[2]
def talk(c):
    try:
        for line in c.makefile("rb"):
            c.sendall(host + line)
    except OSError:
        pass
u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
u.bind((addr, 80))
def answer():
    while True:
        d, a = u.recvfrom(65536)
        u.sendto(host + d, a)
l = socket.create_server((addr, 80), family=socket.AF_INET6, backlog=128)
threading.Thread(target=answer, daemon=True).start()
while True:
    threading.Thread(target=talk, args=(l.accept()[0],), daemon=True).start()
`

func thePairs(t *testing.T) *pairs {
	t.Helper()
	if plane := os.Getenv("SCAFFOLD_PLANE"); plane != "" && plane != file.LinuxPlane {
		t.Skip("needs Linux routers, whose daemons may be away while their kernels forward: SCAFFOLD_PLANE is " + plane)
	}
	n := severalControllers(t, "testdata/pairs.yaml", "pr", "")
	s, err := n.service("pairs")
	if err != nil {
		t.Fatal(err)
	}
	p := &pairs{network: n, to: netip.AddrPortFrom(netip.MustParseAddr(s.Address), 80), client: n.at("c1"), server: n.at("s1"),
		programs: map[string]*nstest.Proc{}, flows: map[string]net.Conn{}, dead: map[string]part{}, port: 1000}
	t.Cleanup(func() { // before the namespaces are closed
		for _, cancel := range p.cancels {
			cancel()
		}
		p.running.Wait()
	})
	for _, host := range []string{"s1", "s2"} {
		p.serve(host)
	}
	p.whole()
	if err := p.name(t.Context(), "pairs.svc.", true); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, p.look(), func() error { // what a restart knows is saved a moment later
		text, err := os.ReadFile(filepath.Join(p.lab.ProgramDir("c1", "state"), "names.json"))
		if err == nil && !bytes.Contains(text, []byte(`"pairs"`)) {
			err = fmt.Errorf("the name is not saved: %s", text)
		}
		return err
	})
	return p
}

func (p *pairs) serve(host string) {
	p.t.Helper()
	p.programs[host] = p.start(host, "python3", "-c", lines, host, p.to.Addr().String())
}

// take takes a part away; the network may not have noticed when it returns.
func (p *pairs) take(x part) {
	p.t.Helper()
	p.dead[x.name] = x
	for _, d := range x.daemons {
		if !p.gone(d, x.name) {
			p.do("kill " + d)
		}
	}
	if x.server != "" {
		p.programs[x.server].Kill()
	}
	how := "unplug "
	if x.cut {
		how = "cut "
	}
	for _, l := range x.links {
		p.do(how + l[0] + " " + l[1])
	}
}

const controller = "ctl/controld"

// gone reports whether a daemon is away with another part, too.
func (p *pairs) gone(daemon, but string) bool {
	for name, x := range p.dead {
		if name != but && slices.Contains(x.daemons, daemon) {
			return true
		}
	}
	return false
}

// give brings a part back.
func (p *pairs) give(x part) {
	p.t.Helper()
	delete(p.dead, x.name)
	for _, l := range x.links {
		if !p.down(l) {
			p.do("heal " + l[0] + " " + l[1])
		}
	}
	for _, d := range x.daemons {
		if !p.gone(d, x.name) {
			p.do("start " + d)
		}
	}
	if x.server != "" {
		p.serve(x.server)
	}
}

// down reports whether a link is away with another part.
func (p *pairs) down(l [2]string) bool {
	for _, x := range p.dead {
		if slices.Contains(x.links, l) {
			return true
		}
	}
	return false
}

// whole waits until all that is not away is part of the network again, and the two flows are there.
func (p *pairs) whole() {
	p.t.Helper()
	nstest.Wait(p.t, p.look(), p.isWhole)
	for _, host := range []string{"s1", "s2"} { // anew: one that has moved stays where it is
		if c := p.flows[host]; c != nil {
			c.Close()
		}
		delete(p.flows, host)
		p.flowTo(host)
	}
}

func (p *pairs) isWhole() error {
	if err := p.hostsAreThere(); err != nil {
		return err
	}
	if p.gone(controller, "") {
		return nil // there is nobody who knows more
	}
	return errors.Join(p.routersAreThere(), p.instancesAreThere())
}

// hosts and where they hang, the first uplink first.
var uplinks = map[string][]string{"c1": {"ra", "u"}, "s1": {"rs", "u"}, "s2": {"u"}}

// hostsAreThere asks the hosts themselves, and the controller unless nobody leads.
func (p *pairs) hostsAreThere() error {
	for _, host := range slices.Sorted(maps.Keys(uplinks)) {
		var want []string
		for _, r := range uplinks[host] {
			if !p.down([2]string{host, r}) && !p.gone(r+"/routerd", "") { // who is away does not greet
				want = append(want, r)
			}
		}
		if p.gone(host+"/hostd", "") || len(want) == 0 {
			continue
		}
		s, err := p.local(host).GetHostStatus(p.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return fmt.Errorf("the daemon of %s: %w", host, err)
		}
		if p.gone(controller, "") {
			continue
		}
		var has []string
		for _, u := range s.Msg.Uplinks {
			if u.Up && u.Locator != "" {
				has = append(has, u.Router)
			}
		}
		if s.Msg.State != "joined" || !subset(want, has) {
			return fmt.Errorf("%s is %s %s by the routers %v, want %v", host, s.Msg.State, s.Msg.Reason, has, want)
		}
		h, err := p.admin.GetHost(p.t.Context(), connect.NewRequest(&apiv1.GetHostRequest{Name: host}))
		if err != nil || h.Msg.State != "up" || h.Msg.Protocol == 0 {
			return fmt.Errorf("%s, by the controller: %v %v", host, h, err)
		}
		if len(want) == len(uplinks[host]) && (len(h.Msg.Places) == 0 || h.Msg.Places[0].Router != want[0]) {
			return fmt.Errorf("new flows of %s do not go by %s: %v", host, want[0], h.Msg.Places)
		}
	}
	return nil
}

func subset(a, of []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(of, x) })
}

// between are the links of routers.
var between = [][2]string{{"ra", "t"}, {"ra", "u"}, {"rs", "t"}, {"rs", "u"}}

func (p *pairs) routersAreThere() error {
	r, err := p.admin.ListRouters(p.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return err
	}
	up, linked := map[string]bool{}, map[[2]string]bool{}
	for _, r := range r.Msg.Routers {
		up[r.Name] = r.State == "up"
		for _, l := range r.Links {
			linked[[2]string{r.Name, l.Peer}] = l.Up
		}
	}
	for _, r := range []string{"ra", "rs", "t", "u"} {
		if !up[r] && !p.gone(r+"/routerd", "") {
			return fmt.Errorf("router %s is away", r)
		}
	}
	for _, l := range between {
		for _, l := range [][2]string{l, {l[1], l[0]}} {
			if up[l[0]] && up[l[1]] && !p.down(l) && !p.down([2]string{l[1], l[0]}) && !linked[l] {
				return fmt.Errorf("router %s does not see %s", l[0], l[1])
			}
		}
	}
	return nil
}

// instancesAreThere asks whether each server that runs is one of the service's, in all routers' rules.
func (p *pairs) instancesAreThere() error {
	s, err := p.service("pairs")
	if err != nil {
		return err
	}
	serving := map[string]int{}
	for _, i := range s.Instances {
		if i.Port == 80 && i.State == "serving" && i.Effective > 0 {
			serving[i.Host]++
		}
	}
	for host, program := range p.programs {
		select {
		case <-program.Done():
			continue
		default:
		}
		if serving[host] != 2 && !p.gone(host+"/hostd", "") && !(host == "s1" && p.down([2]string{"s1", "rs"}) && p.down([2]string{"s1", "u"})) {
			return fmt.Errorf("%s serves by %d protocols, want 2; the instances are %v", host, serving[host], s.Instances)
		}
	}
	// The answer to a change is said when all routers that are there have applied it.
	_, err = p.admin.SetWeight(p.t.Context(), connect.NewRequest(&apiv1.SetWeightRequest{Name: "pairs", Host: "s2", Weight: 100}))
	return err
}

// flowTo sees to it that there is a flow to that host, unless it cannot be had while parts are away.
func (p *pairs) flowTo(host string) {
	p.t.Helper()
	select {
	case <-p.programs[host].Done():
		return
	default:
	}
	if host == "s1" && p.down([2]string{"s1", "rs"}) && p.down([2]string{"s1", "u"}) {
		return
	}
	nstest.Wait(p.t, p.look(), func() error {
		ctx, cancel := context.WithTimeout(p.t.Context(), nstest.Deadline)
		defer cancel()
		c, err := p.from(ctx, "tcp6", p.to)
		if err != nil {
			return fmt.Errorf("a flow to %s: %w", host, err)
		}
		got, err := askBy(ctx, c, "before")
		if err != nil || got != host {
			c.Close()
			return fmt.Errorf("a flow to %s: %s answers, %v", host, got, err)
		}
		p.flows[host] = c
		p.t.Cleanup(func() { c.Close() })
		return nil
	})
}
