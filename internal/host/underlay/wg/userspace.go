package wg

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"scaffold.dev/scaffold/internal/host/underlay"
)

// A goEngine is wireguard-go over TAP devices, one for each tunnel.
type goEngine struct {
	dev   *device.Device
	bind  *bind
	taps  *taps
	key   []byte                   // nil before the first configure
	peers map[string]underlay.Peer // that it was told, by public key
}

func startGo(into *os.File) (*goEngine, error) {
	b := newBind(into)
	t, err := newTaps(b)
	if err != nil {
		return nil, err
	}
	quiet := &device.Logger{Verbosef: device.DiscardLogf, Errorf: device.DiscardLogf} // what matters is in its state
	return &goEngine{dev: device.NewDevice(t, b, quiet), bind: b, taps: t, peers: map[string]underlay.Peer{}}, nil
}

func (g *goEngine) makePort(in underlay.Port, _ *os.File) error { return g.taps.open(in) }

func (g *goEngine) dropPort(in underlay.Port) error {
	g.taps.drop(in)
	return nil
}

func (g *goEngine) name() string { return "wireguard-go" }
func (g *goEngine) close()       { g.dev.Close() }

// configure gives the device its key and its port. A device that has peers loses them before its key changes, and gets
// them back: SetPrivateKey locks the device's identity and then each peer's handshake, ConsumeMessageResponse locks them
// the other way round, so that an answer that comes meanwhile stops both for ever, and with them this process.
func (g *goEngine) configure(key []byte, listen uint16) error {
	changed := g.key != nil && !bytes.Equal(g.key, key)
	var heard map[string]underlay.PeerState
	if changed {
		var err error
		if heard, err = g.states(); err != nil {
			return err
		}
		if err := g.dev.IpcSet("replace_peers=true\n"); err != nil {
			return err
		}
	}
	g.key = bytes.Clone(key)
	err := g.identify(key, listen)
	if changed {
		err = errors.Join(err, g.bringBack(heard))
	}
	return err
}

// bringBack sets the peers again, where they were heard last.
func (g *goEngine) bringBack(heard map[string]underlay.PeerState) error {
	var errs []error
	for key, p := range g.peers {
		errs = append(errs, g.setPeer(p))
		if at := heard[key].Endpoint; at.IsValid() {
			errs = append(errs, g.dev.IpcSet(fmt.Sprintf("public_key=%x\nendpoint=%v\n", key, at)))
		}
	}
	return errors.Join(errs...)
}

func (g *goEngine) identify(key []byte, listen uint16) error {
	if err := g.dev.IpcSet(fmt.Sprintf("private_key=%x\nlisten_port=%d\n", key, listen)); err != nil {
		return fmt.Errorf("WireGuard at UDP port %d: %w", listen, err)
	}
	if err := g.dev.Up(); err != nil {
		return fmt.Errorf("WireGuard at UDP port %d: %w", listen, err)
	}
	return nil
}

func (g *goEngine) setPeer(p underlay.Peer) error {
	var text strings.Builder
	in := p.Port.Inside(!p.Endpoint.IsValid())
	fmt.Fprintf(&text, "public_key=%x\nreplace_allowed_ips=true\nallowed_ip=%v/32\n", p.Key, in.Remote)
	if p.Endpoint.IsValid() {
		fmt.Fprintf(&text, "endpoint=%v\npersistent_keepalive_interval=%d\n", p.Endpoint, keepalive)
	}
	if err := g.dev.IpcSet(text.String()); err != nil {
		return err
	}
	g.peers[string(p.Key)] = p
	return nil
}

func (g *goEngine) removePeer(key []byte) error {
	delete(g.peers, string(key))
	return g.dev.IpcSet(fmt.Sprintf("public_key=%x\nremove=true\n", key))
}

func (g *goEngine) states() (map[string]underlay.PeerState, error) {
	text, err := g.dev.IpcGet()
	if err != nil {
		return nil, err
	}
	return readStates(text), nil
}

// readStates reads the peers out of what wireguard-go says of itself: lines of key=value, each peer after its key.
func readStates(text string) map[string]underlay.PeerState {
	all, at := map[string]underlay.PeerState{}, ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "public_key" {
			raw, _ := hex.DecodeString(value)
			at = string(raw)
		}
		if at == "" {
			continue
		}
		s := all[at]
		number, _ := strconv.ParseUint(value, 10, 64)
		switch key {
		case "endpoint":
			s.Endpoint, _ = netip.ParseAddrPort(value)
		case "last_handshake_time_sec":
			if number > 0 {
				s.Handshake = time.Unix(int64(number), 0)
			}
		case "rx_bytes":
			s.Received = number
		case "tx_bytes":
			s.Sent = number
		}
		all[at] = s
	}
	return all
}
