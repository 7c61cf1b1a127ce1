package agent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/netip"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// echoTicks is for how many HELLO intervals a challenge is good. What a neighbour echoes is as old as its last LINK but one.
const echoTicks = silentTicks

// A talk is what two routers know of each other's LINKs at one pair of ports.
type talk struct {
	begun     bool
	key       uint32 // of the peer, by its id
	serial    uint64 // of its last message
	challenge uint64 // and what that asks us to echo
	tick      uint64 // when that was
}

// inTouch reports whether the neighbour's last message is not long ago: then it has a challenge of ours to echo.
func (n *Neighbours) inTouch(key NeighbourKey) bool {
	nb := n.all[key]
	return nb != nil && nb.talk.begun && n.tick-nb.talk.tick <= silentTicks
}

// proven reports whether the neighbour is one now. What is recorded long ago may bring us in touch, but not this.
func (n *Neighbours) proven(key NeighbourKey) bool {
	nb := n.all[key]
	return nb != nil && nb.proved && nb.missed <= silentTicks
}

// mayAnswer counts a LINK to somebody who may be nobody.
func (n *Neighbours) mayAnswer(port string) bool {
	if n.answers[port] >= maxAnswers {
		n.refused[refusedExcess]++
		return false
	}
	n.answers[port]++
	return true
}

// challenge is what the neighbour at a pair of ports is to echo, another one in each interval. It follows from a secret, so
// that nothing is kept of who was asked.
func (n *Neighbours) challenge(key NeighbourKey, tick uint64) uint64 {
	h := hmac.New(sha256.New, n.secret[:])
	h.Write([]byte(key.Port + "\x00" + key.Peer + "\x00" + key.PeerPort + "\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, tick))
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

// lately reports whether a challenge of ours for the pair of ports is the one that was echoed.
func (n *Neighbours) lately(key NeighbourKey, echo uint64) bool {
	for tick := n.tick - echoTicks; tick <= n.tick; tick++ {
		if n.challenge(key, tick) == echo {
			return true
		}
	}
	return false
}

// Link is the message for a neighbour, which leaves with the source address.
func (n *Neighbours) Link(key NeighbourKey, source netip.Addr, own sid.Locator) wire.Link {
	m := wire.Link{Header: wire.Header{Nonce: n.challenge(key, n.tick)}, Locator: own,
		Name: n.name, Port: key.Port, Peer: key.Peer, PeerPort: key.PeerPort}
	if n.inTouch(key) {
		m.Echo = n.all[key].talk.challenge
	}
	n.keys.sign(&m, source.WithZone(""))
	return m
}

// Due are the neighbours at a port that get a LINK in each interval.
func (n *Neighbours) Due(port string) (list []NeighbourKey) {
	for key, nb := range n.all {
		if key.Port == port && (nb.talk.begun || nb.Configured) && n.keys.standing(key.Peer) == provable {
			list = append(list, key)
		}
	}
	return list
}

// Proved takes a LINK. It counts where the router that it names made it for us, was not heard before, and echoes what we
// asked lately at this port of this neighbour: so nobody else can make it, and a recording is worth nothing at another
// port, at another router, or later. Fresh and answer are as of Heard; what is answered is news.
func (n *Neighbours) Proved(at Origin, m wire.Link) (fresh bool, key NeighbourKey, answer bool) {
	key = NeighbourKey{Port: at.Port, Peer: m.Name}
	old := n.all[key]
	configured := old != nil && old.Configured
	switch {
	case m.Peer != n.name || m.Name == n.name || m.PeerPort != at.Port && m.PeerPort != "":
		return false, key, false // another's, on the same link
	case !at.From.IsLinkLocalUnicast() && !configured || m.PeerPort == "" && !configured:
		return false, key, false
	case !n.keys.verify(m, at.From.WithZone("")):
		n.refused[refusedProof]++
		return false, key, false
	}
	if !configured {
		key.PeerPort = m.Port
		if old = n.all[key]; old == nil && n.ends(key) >= maxEnds {
			n.refused[refusedExcess]++
			return false, key, false
		}
	}
	if old == nil {
		old = &Neighbour{peerPort: m.Port}
		n.all[key] = old
	}
	known := n.proven(key) && old.talk.key == m.KeyID
	if old.talk.begun && old.talk.key == m.KeyID && m.Serial <= old.talk.serial {
		n.refused[refusedReplay]++
		return false, key, false
	}
	old.talk = talk{begun: true, key: m.KeyID, serial: m.Serial, challenge: m.Nonce, tick: n.tick}
	if !n.lately(key, m.Echo) {
		if m.Echo != 0 {
			n.refused[refusedStale]++
		}
		return false, key, !known
	}
	now := Neighbour{peerPort: m.Port, Via: at.From.WithZone(""), MAC: at.MAC, Locator: m.Locator, heard: true, proved: true, talk: old.talk}
	if configured {
		now.Via, now.Configured = old.Via, true
	}
	if fresh = n.put(key, now); fresh && !configured { // what its HELLO told before it had a key
		maps.DeleteFunc(n.all, func(k NeighbourKey, nb *Neighbour) bool {
			return k.Port == at.Port && k.Peer == m.Name && !nb.talk.begun
		})
	}
	return fresh, key, !known
}

// ends counts the ports of a router that prove themselves at one of ours.
func (n *Neighbours) ends(of NeighbourKey) (count int) {
	for key, nb := range n.all {
		if key.Port == of.Port && key.Peer == of.Peer && nb.talk.begun {
			count++
		}
	}
	return count
}
