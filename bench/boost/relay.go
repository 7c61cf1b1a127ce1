package boost

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"scaffold.dev/scaffold/bench"
)

// A relay is a program at the near router that takes connections itself and makes others to the server.
type relay struct {
	contender
	aim       string
	plainOnly bool // aim is for agents that do not seal
	at        netip.AddrPort
	cmd       *exec.Cmd
}

// Where relays listen, at the near router.
const (
	relayHAProxy = 9001 + iota
	relaySocat
	relaySplice
)

// relays starts those that are installed; stop ends them. What is missing a note says.
func (b *rig) relays(ctx context.Context) (there []*relay, stop func()) {
	to := b.server(ownPlain).String()
	var near netip.Addr
	for _, a := range b.lab.Plan().Node("c1").Ports[0].Peer.Addrs {
		if a.Addr().Is4() {
			near = a.Addr()
		}
	}
	place := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(near, port) }
	all := []*relay{
		{contender: contender{name: "haproxy"}, aim: ">= 1.4", at: place(relayHAProxy)},
		{contender: contender{name: "socat"}, aim: ">= 1.4", at: place(relaySocat)},
		{contender: contender{name: "splice relay"}, aim: ">= 0.85", plainOnly: true, at: place(relaySplice)},
	}
	begin := []func(at string) ([]string, error){
		func(at string) ([]string, error) { return b.haproxy(at, to) },
		func(at string) ([]string, error) { return socat(at, to), nil },
		func(at string) ([]string, error) {
			self, err := os.Executable()
			return []string{self, "agent", "splice", "--listen", at, "--to", to}, err
		},
	}
	for i, r := range all {
		argv, err := begin[i](r.at.String())
		if err == nil {
			err = b.startRelay(ctx, r, argv)
		}
		if err != nil {
			b.note("there is no %s to compare with (scripts/packages.sh bench installs haproxy and socat): %v", r.name, err)
			continue
		}
		there = append(there, r)
	}
	return there, func() {
		for _, r := range there {
			r.end()
		}
	}
}

func (b *rig) startRelay(ctx context.Context, r *relay, argv []string) error {
	cmd, err := b.lab.Command(ctx, argv...)
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := b.lab.Start("x", cmd); err != nil {
		return err
	}
	r.cmd = cmd
	return nil
}

// end ends a relay with what it has started.
func (r *relay) end() {
	syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	r.cmd.Wait()                                      //nolint:errcheck // we ended it
}

// haproxy splices, which is what it does best.
func (b *rig) haproxy(at, to string) ([]string, error) {
	dir := b.lab.ProgramDir("x", "haproxy")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "haproxy.cfg")
	return []string{"haproxy", "-q", "-db", "-f", conf}, os.WriteFile(conf, fmt.Appendf(nil, bench.HAProxyConf, at, to), 0o644)
}

// socat with more than the 8 KiB at once that are its default.
func socat(at, to string) []string {
	listen := netip.MustParseAddrPort(at)
	return []string{"socat", "-b", "262144", fmt.Sprintf("TCP4-LISTEN:%d,bind=%v,fork,reuseaddr", listen.Port(), listen.Addr()), "TCP4:" + to}
}
