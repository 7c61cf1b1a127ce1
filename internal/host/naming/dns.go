package naming

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

const forwardLimit = 3 * time.Second

// Serve answers DNS on the configured addresses. One that is taken costs names there and nothing else.
func (n *Names) Serve() {
	for _, addr := range n.cfg.Listen {
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			n.cfg.Log.Warn("no DNS here: programs on this host find names only if they ask elsewhere", "address", addr, "error", err)
			continue
		}
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			udp.Close()
			n.cfg.Log.Warn("no DNS here", "address", addr, "error", err)
			continue
		}
		n.start(&dns.Server{PacketConn: udp, Handler: n})
		n.start(&dns.Server{Listener: tcp, Handler: n})
	}
}

func (n *Names) start(s *dns.Server) {
	n.mu.Lock()
	n.servers = append(n.servers, s)
	n.mu.Unlock()
	go s.ActivateAndServe() //nolint:errcheck // ends with close
}

// At answers at sockets that somebody else has opened, in whatever namespace, until end is called.
func (n *Names) At(udp net.PacketConn, tcp net.Listener) (end func()) {
	for _, s := range []*dns.Server{{PacketConn: udp, Handler: n}, {Listener: tcp, Handler: n}} {
		go s.ActivateAndServe() //nolint:errcheck // ends with end
	}
	return func() { udp.Close(); tcp.Close() }
}

// Close ends the answers at the configured addresses.
func (n *Names) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.servers {
		if s.PacketConn != nil {
			s.PacketConn.Close()
		}
		if s.Listener != nil {
			s.Listener.Close()
		}
	}
	if n.saved != nil {
		n.saved.Stop()
	}
}

// ServeDNS answers one query.
func (n *Names) ServeDNS(w dns.ResponseWriter, req *dns.Msg) {
	resp := n.answer(req, w.LocalAddr().Network() == "tcp")
	if opt := req.IsEdns0(); opt != nil && resp.IsEdns0() == nil && resp.Rcode != dns.RcodeFormatError {
		resp.SetEdns0(dns.DefaultMsgSize, false)
	}
	if w.LocalAddr().Network() != "tcp" {
		size := dns.MinMsgSize
		if opt := req.IsEdns0(); opt != nil {
			size = max(size, int(opt.UDPSize()))
		}
		resp.Truncate(size)
	}
	n.cfg.Answered(dns.RcodeToString[resp.Rcode])
	w.WriteMsg(resp) //nolint:errcheck // who asked asks again
}

func (n *Names) answer(req *dns.Msg, tcp bool) *dns.Msg {
	resp := new(dns.Msg)
	resp.SetReply(req)
	if req.Opcode != dns.OpcodeQuery || len(req.Question) != 1 {
		resp.Rcode = dns.RcodeNotImplemented
		return resp
	}
	q := req.Question[0]
	ctx, cancel := context.WithTimeout(n.ctx, forwardLimit)
	defer cancel()
	if dns.IsSubDomain(n.Suffix(), strings.ToLower(q.Name)) {
		n.answerName(ctx, resp, q)
		return resp
	}
	if addr, ok := reverse(q.Name); ok && n.ours(addr) {
		n.answerAddress(ctx, resp, q, addr)
		return resp
	}
	return n.pass(ctx, req, resp, tcp)
}

// answerName answers for the domain. A name has one kind of record, AAAA; others exist but are empty.
func (n *Names) answerName(ctx context.Context, resp *dns.Msg, q dns.Question) {
	resp.Authoritative, resp.RecursionAvailable = true, true
	label := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(q.Name), n.Suffix()), ".")
	if label == "" {
		resp.Ns = n.authority()
		return
	}
	a, err := n.LookUp(ctx, label, &apiv1.ResolveRequest{Name: label})
	if n.failed(resp, err) {
		return
	}
	if q.Qtype != dns.TypeAAAA && q.Qtype != dns.TypeANY {
		resp.Ns = n.authority()
		return
	}
	resp.Answer = []dns.RR{&dns.AAAA{
		Hdr:  dns.RR_Header{Name: q.Name, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: a.TTL},
		AAAA: a.Address.AsSlice(),
	}}
}

// failed fills in what becomes of a name that was not found, or could not be looked for.
func (n *Names) failed(resp *dns.Msg, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrUnknown):
		resp.Rcode = dns.RcodeNameError
		resp.Ns = n.authority()
	default:
		resp.Rcode, resp.Authoritative = dns.RcodeServerFailure, false
		n.cfg.Log.Debug("cannot resolve", "error", err)
	}
	return true
}

// authority says how long a "no" may be believed.
func (n *Names) authority() []dns.RR {
	zone := n.Suffix()
	return []dns.RR{&dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 1},
		Ns:  "localhost.", Mbox: "hostmaster." + zone, Serial: 1, Refresh: 60, Retry: 10, Expire: 600, Minttl: 1,
	}}
}

// answerAddress answers PTR for services and hosts.
func (n *Names) answerAddress(ctx context.Context, resp *dns.Msg, q dns.Question, addr netip.Addr) {
	resp.Authoritative, resp.RecursionAvailable = true, true
	a, err := n.LookUp(ctx, addr.String(), &apiv1.ResolveRequest{Address: addr.String()})
	if n.failed(resp, err) || q.Qtype != dns.TypePTR && q.Qtype != dns.TypeANY {
		return
	}
	resp.Answer = []dns.RR{&dns.PTR{
		Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: a.TTL},
		Ptr: n.qualified(a.Name),
	}}
}

// qualified puts the domain behind a name that lacks it.
func (n *Names) qualified(label string) string {
	suffix := n.Suffix()
	if f := dns.Fqdn(strings.ToLower(label)); dns.IsSubDomain(suffix, f) {
		return f
	}
	return dns.Fqdn(strings.ToLower(label)) + suffix
}

// ours reports whether the network gives the address its name.
func (n *Names) ours(addr netip.Addr) bool {
	space := n.Space()
	return space.Services.Contains(addr) || space.AS.Contains(addr) || space.Identities.Contains(addr)
}

// reverse reads a question such as 1.0.0. .. .ip6.arpa.
func reverse(qname string) (netip.Addr, bool) {
	nibbles, ok := strings.CutSuffix(strings.ToLower(qname), ".ip6.arpa.")
	if !ok || len(nibbles) != 63 {
		return netip.Addr{}, false
	}
	var digits [32]byte
	for i := range digits {
		digits[i] = nibbles[62-2*i]
		if i < 31 && nibbles[61-2*i] != '.' {
			return netip.Addr{}, false
		}
	}
	var b [16]byte
	if _, err := hex.Decode(b[:], digits[:]); err != nil {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(b), true
}

// pass asks the servers from before for names of other domains.
func (n *Names) pass(ctx context.Context, req, resp *dns.Msg, tcp bool) *dns.Msg {
	c := dns.Client{Net: "udp", Timeout: forwardLimit}
	if tcp {
		c.Net = "tcp"
	}
	for _, server := range n.forward {
		if r, _, err := c.ExchangeContext(ctx, req, server); err == nil {
			return r
		}
	}
	resp.Rcode = dns.RcodeRefused
	if len(n.forward) > 0 {
		resp.Rcode = dns.RcodeServerFailure
	}
	return resp
}

// upstreams reads the servers of a resolv.conf that are not this daemon.
func upstreams(file string, own []string) (servers []string) {
	if file == "" {
		return nil
	}
	conf, err := dns.ClientConfigFromFile(file)
	if err != nil {
		return nil
	}
	for _, s := range conf.Servers {
		addr := net.JoinHostPort(s, conf.Port)
		mine := false
		for _, o := range own {
			mine = mine || o == addr
		}
		if !mine {
			servers = append(servers, addr)
		}
	}
	return servers
}

// Space is the address plan, as far as it is known.
func (n *Names) Space() sid.Space {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan.Services.IsValid() {
		return n.plan
	}
	return sid.DefaultSpace()
}
