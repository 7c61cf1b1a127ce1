package wg

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"scaffold.dev/scaffold/internal/host/underlay"
)

// deviceName is the one interface of the namespace. It takes what any tunnel may carry; the tunnels are smaller.
const (
	deviceName = "wg"
	deviceMTU  = 9216
)

// A kernelEngine is the kernel's WireGuard. What it carries is the kernel's VXLAN.
type kernelEngine struct {
	client *wgctrl.Client
	link   netlink.Link
}

// startKernel makes the interface from within the daemon's namespace, where its socket stays, and puts it into
// this one.
func startKernel(into *os.File) (*kernelEngine, error) {
	own, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer own.Close()
	daemon, err := netlink.NewHandleAt(netns.NsHandle(into.Fd()))
	if err != nil {
		return nil, err
	}
	defer daemon.Close()
	attrs := netlink.LinkAttrs{Name: deviceName, MTU: deviceMTU, Namespace: netlink.NsFd(own), TxQLen: -1}
	if err := daemon.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs}); err != nil {
		return nil, err
	}
	k := &kernelEngine{}
	if k.link, err = netlink.LinkByName(deviceName); err == nil {
		err = netlink.LinkSetUp(k.link)
	}
	if err == nil {
		k.client, err = wgctrl.New()
	}
	if err != nil {
		return nil, errors.Join(err, netlink.LinkDel(k.link))
	}
	return k, nil
}

func (k *kernelEngine) name() string { return "kernel" }

func (k *kernelEngine) close() {
	k.client.Close()
	netlink.LinkDel(k.link) //nolint:errcheck // goes with the namespace
}

func (k *kernelEngine) configure(key []byte, listen uint16) error {
	private, err := wgtypes.NewKey(key)
	if err != nil {
		return err
	}
	port := int(listen)
	c := wgtypes.Config{PrivateKey: &private}
	if listen != 0 {
		c.ListenPort = &port
	}
	if err := k.client.ConfigureDevice(deviceName, c); err != nil {
		return fmt.Errorf("WireGuard at UDP port %d: %w", listen, err)
	}
	return nil
}

func (k *kernelEngine) setPeer(p underlay.Peer) error {
	key, err := wgtypes.NewKey(p.Key)
	if err != nil {
		return err
	}
	in := p.Port.Inside(!p.Endpoint.IsValid())
	c := wgtypes.PeerConfig{PublicKey: key, ReplaceAllowedIPs: true, AllowedIPs: []net.IPNet{*only(in.Remote)}}
	if p.Endpoint.IsValid() {
		every := keepalive * time.Second
		c.Endpoint, c.PersistentKeepaliveInterval = net.UDPAddrFromAddrPort(p.Endpoint), &every
	}
	return k.client.ConfigureDevice(deviceName, wgtypes.Config{Peers: []wgtypes.PeerConfig{c}})
}

func (k *kernelEngine) removePeer(key []byte) error {
	public, err := wgtypes.NewKey(key)
	if err != nil {
		return err
	}
	return k.client.ConfigureDevice(deviceName, wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: public, Remove: true}}})
}

func (k *kernelEngine) states() (map[string]underlay.PeerState, error) {
	d, err := k.client.Device(deviceName)
	if err != nil {
		return nil, err
	}
	all := map[string]underlay.PeerState{}
	for _, p := range d.Peers {
		s := underlay.PeerState{Handshake: p.LastHandshakeTime, Received: uint64(p.ReceiveBytes), Sent: uint64(p.TransmitBytes)}
		if p.Endpoint != nil {
			s.Endpoint = p.Endpoint.AddrPort()
		}
		all[string(p.PublicKey[:])] = s
	}
	return all, nil
}

func (k *kernelEngine) makePort(in underlay.Port, into *os.File) error {
	if err := k.route(in, true); err != nil {
		return err
	}
	return in.Make(int(into.Fd()))
}

func (k *kernelEngine) dropPort(in underlay.Port) error { return k.route(in, false) }

// route gives the private namespace a tunnel's addresses, or takes them.
func (k *kernelEngine) route(in underlay.Port, on bool) error {
	a := &netlink.Addr{IPNet: only(in.Local)}
	r := &netlink.Route{LinkIndex: k.link.Attrs().Index, Dst: only(in.Remote), Src: in.Local.AsSlice()}
	if !on {
		return errors.Join(netlink.RouteDel(r), netlink.AddrDel(k.link, a))
	}
	if err := netlink.AddrReplace(k.link, a); err != nil {
		return err
	}
	return netlink.RouteReplace(r)
}
