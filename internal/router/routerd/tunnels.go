package routerd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// processName is the WireGuard process of the router in its namespace.
const processName = "routerd"

// tunnels are the router's ends of tunnels to hosts, docs/protocol.md §5.9. One goroutine makes them, so that
// the loop waits for nothing; has is the loop's own.
type tunnels struct {
	offers  []underlay.Offer
	process *underlay.Process // of WireGuard; nil where it is not offered
	key     []byte            // private, of WireGuard
	has     []*apiv1.Tunnel
	orders  chan *apiv1.Tunnels // the latest
}

func (t *tunnels) offer(k underlay.Kind) (underlay.Offer, bool) {
	i := slices.IndexFunc(t.offers, func(o underlay.Offer) bool { return o.Kind == k })
	if i < 0 {
		return underlay.Offer{}, false
	}
	return t.offers[i], true
}

// openTunnels takes over what an earlier process has left, or removes it where tunnels are not offered any more.
func (d *daemon) openTunnels() error {
	t := &tunnels{offers: d.cfg.Tunnels, orders: make(chan *apiv1.Tunnels, 1)}
	d.tunnels = t
	if err := t.openWireGuard(d.wireguardArgv()); err != nil {
		return err
	}
	if err := t.openVXLAN(); err != nil {
		return err
	}
	if len(t.has) > 0 {
		d.log.Info("took over the tunnels of an earlier process", "tunnels", len(t.has))
	}
	if len(t.offers) > 0 {
		go d.makeTunnels()
	}
	return nil
}

func (d *daemon) wireguardArgv() []string {
	if len(d.cfg.WireGuard) > 0 {
		return d.cfg.WireGuard
	}
	return []string{"/proc/self/exe", "wireguard"}
}

func (t *tunnels) openWireGuard(argv []string) error {
	offer, ok := t.offer(underlay.WireGuard)
	if !ok {
		if p := underlay.FindProcess(processName); p != nil {
			return p.End()
		}
		return nil
	}
	p, err := underlay.StartProcess(processName, argv)
	if err != nil {
		return err
	}
	t.process = p
	s, err := p.State()
	if err != nil {
		return err
	}
	if t.key = s.Setup.Key; t.key == nil {
		t.key = underlay.NewKey()
	}
	if err := p.Set(underlay.Setup{Key: t.key, Listen: offer.At.Port(), Router: true, Peers: s.Setup.Peers}); err != nil {
		return errors.Join(fmt.Errorf("offer tunnels of kind wireguard: %w (is the UDP port taken? choose another one: --tunnel wireguard:%s)", err,
			netip.AddrPortFrom(offer.At.Addr(), offer.At.Port()+1)), p.End())
	}
	for _, peer := range s.Setup.Peers {
		if host, uplink, kind, ok := underlay.ParseNote(peer.Note); ok {
			t.has = append(t.has, &apiv1.Tunnel{Number: peer.Number, Host: host, Uplink: uplink, Kind: string(kind), PublicKey: peer.Key, Mtu: uint32(peer.MTU)})
		}
	}
	return nil
}

func (t *tunnels) openVXLAN() error {
	ports, err := vxlanPorts()
	if err != nil {
		return err
	}
	offer, ok := t.offer(underlay.VXLAN)
	for _, p := range ports {
		host, uplink, kind, _ := underlay.ParseNote(p.Note)
		if !ok || p.UDP != offer.At.Port() {
			if err := underlay.Remove(p.Name); err != nil {
				return err
			}
			continue
		}
		t.has = append(t.has, &apiv1.Tunnel{Number: p.Number, Host: host, Uplink: uplink, Kind: string(kind), Address: p.Remote.String(), Mtu: uint32(p.MTU)})
	}
	if !ok || len(ports) > 0 {
		return nil
	}
	probe, err := net.ListenPacket("udp", ":"+strconv.Itoa(int(offer.At.Port())))
	if err != nil {
		return fmt.Errorf("offer tunnels of kind vxlan: %w (is the UDP port taken? choose another one: --tunnel vxlan:%s)", err,
			netip.AddrPortFrom(offer.At.Addr(), offer.At.Port()+10))
	}
	return probe.Close()
}

// vxlanPorts are the tunnels that are plain VXLAN.
func vxlanPorts() ([]underlay.Port, error) {
	all, err := underlay.Ports()
	return slices.DeleteFunc(all, func(p underlay.Port) bool {
		_, _, kind, ok := underlay.ParseNote(p.Note)
		return !ok || kind != underlay.VXLAN
	}), err
}

// tellOffers writes what is offered, and what there is, into the first report of a session.
func (t *tunnels) tellOffers(j *apiv1.RouterJoin) {
	if t == nil {
		return
	}
	for _, o := range t.offers {
		offer := &apiv1.TunnelOffer{Kind: string(o.Kind), Address: o.At.String()}
		if o.Kind == underlay.WireGuard {
			offer.PublicKey, _ = underlay.PublicKey(t.key) // it was made, or served an earlier process
		}
		j.Offers = append(j.Offers, offer)
	}
	j.Tunnels = t.has
}

// ordered hands the controller's list to makeTunnels, in the place of one that it has not begun.
func (t *tunnels) ordered(list *apiv1.Tunnels) {
	if len(t.offers) == 0 {
		return
	}
	select {
	case <-t.orders:
	default:
	}
	t.orders <- list // the loop is the only one that sends
}

// makeTunnels makes what the controller orders until the end, and reports it.
func (d *daemon) makeTunnels() {
	for {
		select {
		case list := <-d.tunnels.orders:
			made := d.tunnels.make(list.Tunnels)
			d.post(func() {
				d.tunnels.has = list.Tunnels
				for _, m := range made {
					if m.Error != "" {
						d.log.Error("a tunnel cannot be made", "number", m.Number, "error", m.Error)
					}
				}
				if d.session != nil {
					d.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_TunnelsMade{TunnelsMade: &apiv1.TunnelsMade{Serial: list.Serial, Tunnels: made}}})
				}
			})
		case <-d.ctx.Done():
			return
		}
	}
}

// make makes the tunnels exactly those of the list.
func (t *tunnels) make(list []*apiv1.Tunnel) (made []*apiv1.TunnelMade) {
	errs := map[uint32]error{}
	t.makeVXLAN(list, errs)
	t.makeWireGuard(list, errs)
	for _, want := range list {
		m := &apiv1.TunnelMade{Number: want.Number}
		if err := errs[want.Number]; err != nil {
			m.Error = err.Error()
		} else if ll := underlay.AwaitLinkLocal(portOf(want).Name); ll.IsValid() {
			m.LinkLocal = ll.String()
		} else {
			m.Error = "its interface gets no link-local address: is IPv6 off on the router?"
		}
		made = append(made, m)
	}
	return made
}

func portOf(w *apiv1.Tunnel) underlay.Port {
	return underlay.Port{Name: underlay.PortPrefix + strconv.Itoa(int(w.Number)), Number: w.Number, MTU: int(w.Mtu),
		Whole: w.Mtu > underlay.MinMTU, Note: underlay.Note(w.Host, w.Uplink, underlay.Kind(w.Kind))}
}

func (t *tunnels) makeVXLAN(list []*apiv1.Tunnel, errs map[uint32]error) {
	offer, _ := t.offer(underlay.VXLAN)
	has, err := vxlanPorts()
	known := map[string]underlay.Port{}
	for _, p := range has {
		known[p.Name] = p
	}
	for _, w := range list {
		if w.Kind != string(underlay.VXLAN) {
			continue
		}
		p := portOf(w)
		old, there := known[p.Name]
		delete(known, p.Name)
		if err == nil {
			p.UDP = offer.At.Port()
			p.Remote, err = netip.ParseAddr(w.Address)
		}
		if err == nil {
			err = turnOrMake(p, old, there)
		}
		errs[w.Number], err = err, nil
	}
	for name := range known {
		underlay.Remove(name) //nolint:errcheck // tried again with the next order
	}
}

// turnOrMake keeps an interface where it can: routes and probes go on while it turns to another address.
func turnOrMake(p, old underlay.Port, there bool) error {
	way, err := underlay.Reach(p.Remote)
	if err != nil {
		return err
	}
	p.Local = way.Source
	if there && (old.Whole != p.Whole || old.UDP != p.UDP || old.Number != p.Number) {
		if err := underlay.Remove(p.Name); err != nil {
			return err
		}
		there = false
	}
	switch {
	case !there:
		err = p.Make(-1)
	case old.Local != p.Local || old.Remote != p.Remote:
		err = p.Turn()
	}
	return cmp.Or(err, p.Start())
}

func (t *tunnels) makeWireGuard(list []*apiv1.Tunnel, errs map[uint32]error) {
	if t.process == nil {
		return
	}
	offer, _ := t.offer(underlay.WireGuard)
	setup := underlay.Setup{Key: t.key, Listen: offer.At.Port(), Router: true}
	for _, w := range list {
		if w.Kind == string(underlay.WireGuard) && !slices.ContainsFunc(setup.Peers, func(p underlay.Peer) bool { return bytes.Equal(p.Key, w.PublicKey) }) {
			setup.Peers = append(setup.Peers, underlay.Peer{Port: portOf(w), Key: w.PublicKey})
		} else if w.Kind == string(underlay.WireGuard) {
			errs[w.Number] = errors.New("another tunnel has the same public key")
		}
	}
	err := t.process.Set(setup)
	for _, p := range setup.Peers {
		errs[p.Number] = cmp.Or(err, p.Start())
	}
}

// close ends the tunnels, or leaves them to the next process.
func (t *tunnels) close(keep bool) error {
	if t == nil || keep {
		return nil
	}
	var errs []error
	if t.process != nil {
		errs = append(errs, t.process.End())
	}
	ports, err := vxlanPorts()
	errs = append(errs, err)
	for _, p := range ports {
		errs = append(errs, underlay.Remove(p.Name))
	}
	return errors.Join(errs...)
}
