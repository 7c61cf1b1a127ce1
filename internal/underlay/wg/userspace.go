package wg

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"scaffold.dev/scaffold/internal/underlay"
)

// A goEngine is wireguard-go over a TUN device.
type goEngine struct {
	dev  *device.Device
	bind *bind
}

func startGo(into int) (*goEngine, error) {
	t, err := tun.CreateTUN(deviceName, deviceMTU)
	if err != nil {
		return nil, err
	}
	b, err := newBind(into)
	if err != nil {
		t.Close()
		return nil, err
	}
	quiet := &device.Logger{Verbosef: device.DiscardLogf, Errorf: device.DiscardLogf} // what matters is in its state
	g := &goEngine{dev: device.NewDevice(unpadded{t}, b, quiet), bind: b}
	link, err := netlink.LinkByName(deviceName)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		g.close()
		return nil, fmt.Errorf("set up the TUN device: %w", err)
	}
	return g, nil
}

// unpadded is a TUN device whose packets are not filled up to multiples of 16: what a tunnel carries is exactly
// what its path leaves. A packet that is larger than the device says it takes counts by what is over a multiple of
// that, here nothing.
type unpadded struct{ tun.Device }

func (unpadded) MTU() (int, error) { return 1, nil }

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
