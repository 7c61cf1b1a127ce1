package e2e

import (
	"fmt"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// forgeries are what a router that sees every packet can make of each message: it knows all addresses.
func (s *siege) forgeries(ear *ear) (all [][]attack) {
	for i, proto := range []string{"tcp", "udp"} {
		c, v := s.ends([]string{"s1", "s2"}[i], proto)
		for _, pair := range [][2]end{{c, v}, {v, c}} {
			all = append(all, s.movesOf(pair[0], ear), s.failsOf(pair[0]))
		}
		all = append(all, s.resumes(c, v))
	}
	return all
}

// movesOf are false moves of one end, told to the other one: to where somebody listens who is a member of the
// network but serves nothing, under every signature that can be had.
func (s *siege) movesOf(e end, ear *ear) (all []attack) {
	place, own, victim := s.nowhere(), s.hostKey(e.host), hostOf(e, s)
	thief := s.member(place)
	for _, kind := range []msg.Type{msg.TypeRSYN, msg.TypeRSYNACK, msg.TypeRACK} {
		honest := e.rsyn(kind, place, e.at())
		from := place.Addr(uint64(honest.Claims[0].Socket))
		for _, x := range []struct {
			how     string
			m       msg.Message
			counter string
		}{
			{"unsigned", honest, "not_authentic"},
			{"signed by another host", thief.Sign(honest, place, e.at()), "not_authentic"},
			{"signed by another host from its own place", thief.Sign(e.rsyn(kind, place, place), place), "other_key"},
			{"with another host's certificate", mixed(own, thief, place).Sign(honest, place, e.at()), "not_authentic"},
			{"to a locator that was never certified", keysOf(own, own, valid, place, e.at()).Sign(honest, place, e.at()), "not_authentic"},
			{"to a locator whose certificate has expired", keysOf(own, attacked.key, expired, place, e.at()).Sign(honest, place, e.at()), "not_authentic"},
		} {
			all = append(all, said(fmt.Sprintf("%v of %s, %s", kind, e.host, x.how), from, e.peer, x.m, victim, "session_"+x.counter))
		}
		if m, ok := ear.last(kind, e.peer).(msg.Renegotiate); ok {
			m.Claims = honest.Claims
			all = append(all, said(fmt.Sprintf("%v of %s, altered", kind, e.host), from, e.peer, m, victim, "session_not_authentic"))
		}
	}
	return all
}

// mixed are one host's key with another one's certificates.
func mixed(own []byte, other *session.Keys, place sid.Locator) *session.Keys {
	return &session.Keys{Host: own, Certificates: map[sid.Locator]msg.Certificate{place: other.Certificates[place]}}
}

// hostOf is the host of the end's peer.
func hostOf(e end, s *siege) string {
	if e.server {
		return "c1"
	}
	for _, host := range []string{"s1", "s2"} {
		if f := s.flows(host)[e.stable.String()]; f != nil {
			return host
		}
	}
	s.t.Fatalf("no server has %v", e.stable)
	return ""
}

// failsOf say falsely that an end serves its flow no more.
func (s *siege) failsOf(e end) []attack {
	place, victim := s.nowhere(), hostOf(e, s)
	thief := s.member(place)
	quote := header.AppendIPv6(nil, e.peer, e.local, header.TCP, 64, 100) // a packet of the victim's
	return []attack{
		said("FLOW-FAIL, unsigned", e.local, e.peer, e.fail(e.at()), victim, "session_not_authentic"),
		said("FLOW-FAIL, signed by another host", e.local, e.peer, thief.Sign(e.fail(e.at()), e.at(), place), victim, "session_not_authentic"),
		said("FLOW-FAIL of another host", e.local, e.peer, thief.Sign(e.fail(place), place), victim, "session_other_key"),
		said("FAIL for a packet of the flow", e.at().Host(), e.peer, msg.Fail{Reason: msg.HostGone, Quote: append(quote, make([]byte, 8)...)}, victim, "session_hint"),
		said("PROBE from elsewhere", place.Addr(uint64(guess())), e.peer, msg.Probe{}, victim, "session_foreign_probe"),
		said("PROBE-ACK that nobody asked for", e.local, e.peer, msg.ProbeAck{Header: msg.Header{Nonce: 9}}, victim, "session_stray_probe"),
		said("BOUND", e.local, e.peer, msg.Bound{Socket: guess()}, victim, "session_unknown_message"),
		said("HELLO", e.local, e.peer, msg.Hello{Name: "rs", Port: "p", Locator: place}, victim, "session_unknown_message"),
		said("SOLICIT", e.local, e.peer, msg.Solicit{Name: "rs"}, victim, "session_unknown_message"),
	}
}

// resumes ask a server to go on with a flow that is alive.
func (s *siege) resumes(c, v end) []attack {
	place, own := s.nowhere(), s.hostKey(c.host)
	thief, real := s.member(place), keysOf(own, attacked.key, valid, c.at(), sid.LocatorOf(c.stable))
	ask := func(at sid.Locator, quote sid.SocketID) msg.Resume {
		claim := c.claim()
		claim.Quote = quote
		return msg.Resume{Locator: at, Claim: claim, Service: s.id(), Proto: sid.TCP, Transport: msg.Transport{ClientPort: 1, ServerPort: 500, MSS: 1400}}
	}
	to, from := v.local, place.Addr(uint64(guess()))
	return []attack{
		said("RESUME, unsigned", from, to, ask(place, 0), v.host, "session_not_authentic"),
		said("RESUME, signed by another host", from, to, thief.Sign(ask(place, 0), place, sid.LocatorOf(c.stable)), v.host, "session_not_authentic"),
		said("RESUME at an instance that cannot", c.local, to, real.Sign(ask(c.at(), 0), c.at(), sid.LocatorOf(c.stable)), v.host, "session_declined"),
		said("RESUME that confirms what was never offered", c.local, to, real.Sign(ask(c.at(), guess()), c.at(), sid.LocatorOf(c.stable)), v.host, "session_declined"),
	}
}

// id is the service's.
func (s *siege) id() sid.ServiceID {
	id, ok := sid.DefaultSpace().ServiceOf(s.addr)
	if !ok {
		s.t.Fatalf("%v is no service", s.addr)
	}
	return id
}

// replays says again all that was ever said between the hosts, from both places.
func (s *siege) replays(beside, on *liar, ear *ear) {
	all := ear.messages()
	kinds := map[msg.Type]int{}
	sumOf := func() (n uint64) {
		for _, host := range []string{"c1", "s1", "s2"} {
			for _, what := range []string{"known_claim", "late_claim", "refused_claim", "late_fail", "stray_probe"} {
				n += s.counters(host)["session_"+what]
			}
		}
		return n
	}
	was := sumOf()
	for _, h := range all {
		t, _, _ := msg.ParseHeader(h.bytes)
		kinds[t]++
		beside.say(h.from, h.to, h.bytes)
		on.say(h.from, h.to, h.bytes)
	}
	if kinds[msg.TypeRSYN] == 0 || kinds[msg.TypeRSYNACK] == 0 || kinds[msg.TypeRACK] == 0 {
		s.t.Fatalf("heard only %v", kinds)
	}
	s.unmoved("a replay of everything")
	if now := sumOf(); now <= was {
		s.t.Errorf("of %d replayed messages none was counted", 2*len(all))
	}
}

// control is the counterpart: the forger's message with the one thing that he cannot have, a certificate, is
// taken. If it were not, the forgeries would prove nothing.
func (s *siege) control(on *liar) {
	c, v := s.ends("s1", "udp")
	place, own := s.nowhere(), s.hostKey("c1")
	m := keysOf(own, attacked.key, valid, place, c.at()).Sign(c.rsyn(msg.TypeRSYN, place, c.at()), place, c.at())
	on.say(place.Addr(uint64(0xbad)), v.local, m.Append(nil))
	s.waitFor("the honest move of a flow", func() error {
		if f := s.flows("s1")[c.stable.String()]; f != nil && f.WirePeer == "" {
			return nil
		} else if f != nil && sid.LocatorOf(endOf("s1", f, 0).peer) != place {
			return fmt.Errorf("s1 sends to %s, want %v", f.WirePeer, place)
		}
		return nil
	})
}
