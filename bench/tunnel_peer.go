package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/host/underlay/wg"
)

// Where wireguard-go by itself is between the client and the server by cable.
var (
	aloneHere  = netip.MustParsePrefix("fd99::1/64")
	aloneThere = netip.MustParsePrefix("fd99::2/64")
)

const alonePort = 51820

// peerWireGuardGo is what tunnels of kind wireguard are compared with besides.
const peerWireGuardGo = "wireguard-go by itself, its own device, between client and server by cable"

// startAlone runs wireguard-go as it is between c1 and the host cable; target is the server behind it.
func startAlone(ctx context.Context, r *Rig) (to string, stop func(), err error) {
	ends := []*aloneEnd{{node: "c1", inside: aloneHere}, {node: "cable", inside: aloneThere}}
	stop = func() {
		for _, e := range ends {
			if e.cmd != nil {
				e.cmd.Process.Kill() // it may have ended
				e.cmd.Wait()         //nolint:errcheck // killed
			}
		}
	}
	for _, e := range ends {
		e.key = underlay.NewKey()
		plain, err := plainTarget(ctx, r, e.node)
		if err != nil {
			return "", stop, err
		}
		e.at = netip.AddrPortFrom(netip.MustParseAddrPort(plain).Addr(), alonePort)
	}
	for i, e := range ends {
		if err := e.start(r, ends[1-i]); err != nil {
			return "", stop, fmt.Errorf("wireguard-go on %s: %w", e.node, err)
		}
	}
	return target(aloneThere.Addr()), stop, nil
}

type aloneEnd struct {
	node   string
	inside netip.Prefix
	key    []byte
	at     netip.AddrPort
	cmd    *exec.Cmd
}

func (e *aloneEnd) start(r *Rig, far *aloneEnd) error {
	public, err := underlay.PublicKey(far.key)
	if err != nil {
		return err
	}
	config, err := json.Marshal(wg.Alone{Key: e.key, Peer: public, Listen: alonePort, Endpoint: far.at, Address: e.inside})
	if err != nil {
		return err
	}
	cmd := exec.Command(r.Binary(), "wireguard", "--alone", string(config))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.Start(e.node, cmd); err != nil {
		return err
	}
	e.cmd = cmd
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "up" {
		return errors.Join(fmt.Errorf("it said %q", line), err)
	}
	return nil
}
