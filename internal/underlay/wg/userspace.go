package wg

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/device"

	"scaffold.dev/scaffold/internal/underlay"
)

// A goEngine is wireguard-go over TAP devices, one for each tunnel.
type goEngine struct {
	dev  *device.Device
	bind *bind
	taps *taps
}

func startGo(into *os.File) (*goEngine, error) {
	b := newBind(into)
	t, err := newTaps(b)
	if err != nil {
		return nil, err
	}
	quiet := &device.Logger{Verbosef: device.DiscardLogf, Errorf: device.DiscardLogf} // what matters is in its state
	return &goEngine{dev: device.NewDevice(t, b, quiet), bind: b, taps: t}, nil
}

func (g *goEngine) makePort(in underlay.Port, _ *os.File) error { return g.taps.open(in) }

func (g *goEngine) dropPort(in underlay.Port) error {
	g.taps.drop(in)
	return nil
}

func (g *goEngine) name() string { return "wireguard-go" }
func (g *goEngine) close()       { g.dev.Close() }

func (g *goEngine) configure(key []byte, listen uint16) error {
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
	return g.dev.IpcSet(text.String())
}

func (g *goEngine) removePeer(key []byte) error {
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
