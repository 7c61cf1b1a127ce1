package bench

import (
	"context"
	"fmt"
	"time"
)

// TunnelLab is the lab of the tunnel benchmark: three servers at one router, by a cable and by tunnels of both kinds
// through a network of IPv4 that carries 1500 bytes.
const TunnelLab = `
name: benchtunnel
services: {cable: {}, vxlan: {}, wireguard: {}}
nodes:
  ctl: controller
  r: {kind: router, service: true, tunnels: true}
  net: underlay
  c1: host
  cable: host
  vxlan: {kind: host, uplink: "tunnel:vxlan"}
  wireguard: {kind: host, uplink: "tunnel:wireguard"}
links:
  - [c1, r]
  - [cable, r]
  - {ends: [ctl, net], over: ipv4}
  - {ends: [r, net], over: ipv4}
  - {ends: [vxlan, net], over: ipv4}
  - {ends: [wireguard, net], over: ipv4}
`

// peerCable is what tunnels are compared with.
const peerCable = "a server by cable, same router"

// beside compares the server behind WireGuard with one that wireguard-go alone leads to.
func beside(ctx context.Context, r *Rig, ours string, pairs int, d time.Duration) (all []Row, err error) {
	alone, stop, err := startAlone(ctx, r)
	defer stop()
	if err != nil {
		return nil, err
	}
	s, err := serve(r, "cable", alone, "--cpu", serverCPU)
	if err != nil {
		return nil, err
	}
	defer s.Kill() //nolint:errcheck // the lab ends with the bench
	if err := awaitAnswer(ctx, r, alone); err != nil {
		return nil, err
	}
	for i, t := range trials[:3] {
		if t.aim = ""; i == 0 {
			t.aim = ">= 1"
		}
		rows, err := t.compare(ctx, r, ours, alone, peerWireGuardGo, pairs, d)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].Name = "wireguard: " + rows[i].Name
		}
		all = append(all, rows[0])
		if t.args[0] == "stream" {
			rows[1].Aim, rows[1].Met = "", true
			all = append(all, rows[1])
		}
	}
	return all, nil
}

// Tunnel compares servers behind tunnels with one by cable, in alternating pairs of d each.
func Tunnel(ctx context.Context, r *Rig, pairs int, d time.Duration) (Report, error) {
	var rep Report
	targets := map[string]string{}
	for _, name := range []string{"cable", "vxlan", "wireguard"} {
		to, err := serviceTarget(ctx, r, name)
		if err != nil {
			return rep, err
		}
		s, err := serve(r, name, to, "--cpu", serverCPU)
		if err != nil {
			return rep, err
		}
		defer s.Kill() //nolint:errcheck // the lab ends with the bench
		if err := awaitServing(ctx, r, name, 1); err != nil {
			return rep, err
		}
		targets[name] = to
	}
	for _, kind := range []string{"vxlan", "wireguard"} {
		for _, t := range trials[:3] { // a connection costs no tunnel more than its packets
			t.aim = ""
			rows, err := t.compare(ctx, r, targets[kind], targets["cable"], peerCable, pairs, d)
			if err != nil {
				return rep, err
			}
			for i := range rows {
				rows[i].Name, rows[i].Aim, rows[i].Met = kind+": "+rows[i].Name, "", true
			}
			rep.Rows = append(rep.Rows, rows...)
		}
	}
	rows, err := beside(ctx, r, targets["wireguard"], pairs, d)
	if err != nil {
		return rep, err
	}
	rep.Rows = append(rep.Rows, rows...)
	rep.Notes = append(rep.Notes, fmt.Sprintf("%d alternating pairs of %v each, streams three times as long; ratios are tunnel / cable, or tunnel / wireguard-go by itself", pairs, d),
		"all namespaces share the machine's processors: what a tunnel costs in CPU is missing to the client and the server")
	return rep, nil
}
