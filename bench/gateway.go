package bench

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// Where the gateway and its peer listen, on one host.
const (
	gatewayHost = "s3"
	gatewayPort = 9001
	haproxyPort = 9002
)

// peerHAProxy is what the gateway is compared with.
const peerHAProxy = "haproxy, mode tcp, option splice-auto, same host and path"

// gatewayTrials are what a client does through either.
var gatewayTrials = []trial{
	{"one TCP stream", ">= 0.95", []string{"stream", "--cpu", "0"}, agent.Result.GbitPerSecond},
	{"request/response, TCP", ">= 0.90", []string{"rr", "--network", "tcp6", "--cpu", serverCPU}, agent.Result.PerSecond},
	{"connect + request + close", ">= 0.90", []string{"connect", "--network", "tcp6", "--cpu", serverCPU}, agent.Result.PerSecond},
}

// HAProxyConf passes connections on as the gateway does; splicing is what haproxy does best.
const HAProxyConf = `defaults
	mode tcp
	option splice-auto
	timeout connect 10s
	timeout client 1h
	timeout server 1h
listen bench
	bind %s
	server service %s
`

// Gateway compares a gateway with haproxy: both on s3, both leading c1's connections, which are plain IPv6,
// to the service on s1. In alternating pairs of d each.
func Gateway(ctx context.Context, r *Rig, service string, pairs int, d time.Duration) (rep Report, err error) {
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	plain, err := plainTarget(ctx, r, gatewayHost)
	if err != nil {
		return rep, err
	}
	s, err := serve(r, "s1", to, "--cpu", serverCPU)
	if err != nil {
		return rep, err
	}
	defer s.Kill() //nolint:errcheck // the lab ends with the bench
	if err := awaitServing(ctx, r, service, 1); err != nil {
		return rep, err
	}
	host := netip.MustParseAddrPort(plain).Addr()
	ours, theirs := netip.AddrPortFrom(host, gatewayPort).String(), netip.AddrPortFrom(host, haproxyPort).String()
	for _, start := range []func() (*exec.Cmd, error){
		func() (*exec.Cmd, error) { return startGateway(r, ours, service) },
		func() (*exec.Cmd, error) { return startHAProxy(r, theirs, to) },
	} {
		cmd, err := start()
		if err != nil {
			return rep, err
		}
		defer func() {
			cmd.Process.Kill() // it may have ended
			cmd.Wait()         //nolint:errcheck // killed
		}()
	}
	for _, at := range []string{ours, theirs} {
		if err := awaitAnswer(ctx, r, at); err != nil {
			return rep, err
		}
	}
	for _, t := range gatewayTrials {
		rows, err := t.compare(ctx, r, ours, theirs, peerHAProxy, pairs, d)
		if err != nil {
			return rep, err
		}
		rep.Rows = append(rep.Rows, rows...)
	}
	rep.Notes = append(rep.Notes,
		fmt.Sprintf("%d alternating pairs of %v each, streams three times as long; ratios are gateway / haproxy", pairs, d),
		"CPU is that of the whole machine: client, server, both ways through the host of the gateway")
	return rep, nil
}

func startGateway(r *Rig, at, service string) (*exec.Cmd, error) {
	socket := filepath.Join(r.ProgramDir(gatewayHost, "gateway"), "gateway.sock")
	cmd := exec.Command(r.Binary(), "gateway", "--socket", socket, "--listen", fmt.Sprintf("%s=%s:%d", at, service, port), "--log-level", "warn")
	cmd.Stderr = os.Stderr
	return cmd, r.Start(gatewayHost, cmd)
}

func startHAProxy(r *Rig, at, to string) (*exec.Cmd, error) {
	dir := r.ProgramDir(gatewayHost, "haproxy")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(conf, fmt.Appendf(nil, HAProxyConf, at, to), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("haproxy", "-q", "-db", "-f", conf)
	cmd.Stderr = os.Stderr
	return cmd, r.Start(gatewayHost, cmd)
}

// awaitAnswer waits until a client is answered at an address.
func awaitAnswer(ctx context.Context, r *Rig, at string) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		res, err := measure(ctx, r, "c1", "connect", "--network", "tcp6", "--to", at, "--duration", "20ms")
		if err == nil && res.Errors > 0 {
			err = fmt.Errorf("%d of %d connections to %s fail", res.Errors, res.Ops, at)
		}
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}
