package host

import (
	"time"

	"scaffold.dev/scaffold/internal/core/backoff"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// How hosts are asked for a port that the network knows of nobody for, docs/protocol.md §3.5: one after the other, so that
// no two of them answer. Who says "no" is not asked again. Who says "later" is, until its daemon has judged the port; it is
// the one that opened it.
const (
	silenceLimit = 100 * time.Millisecond // without an answer: it is gone, or where the flow's own packets will look for it
	laterFirst   = 2 * time.Millisecond
	laterLast    = 10 * time.Millisecond
	laterLimit   = time.Second // in all: a daemon that takes longer is stuck
)

// A question is how far hosts have been asked.
type question struct {
	open  []sid.Locator // who is to be asked yet, in this order
	later sid.Locator   // who said so; 0: nobody
	to    sid.Locator   // who was asked last; 0: the network
	again backoff.Backoff
	wait  time.Duration // before who said "later" is asked again
	late  bool          // hosts were asked since the network was
}

// take reports whether the refusal answers what was asked last, and learns from it.
func (q *question) take(ev Event) bool {
	if q.to == 0 {
		return true
	}
	if ev.Refuser != uint16(q.to) && ev.named() != uint16(q.to) {
		return false
	}
	switch {
	case ev.later():
		if q.later == 0 {
			q.later, q.again = q.to, backoff.Backoff{First: laterFirst, Last: laterLast}
		}
		q.wait = q.again.Next()
	case q.later == q.to:
		q.later = 0
	}
	return true
}

// at is when the next host is to be asked, if any.
func (q *question) at(now, since time.Time) (time.Time, bool) {
	switch {
	case q.later != 0 && now.Before(since.Add(laterLimit)):
		return now.Add(q.wait), true
	case q.later == 0 && len(q.open) > 0:
		return now, true
	}
	return time.Time{}, false
}

// next is whom to ask now.
func (q *question) next() sid.Locator {
	q.late, q.to = true, q.later
	if q.later == 0 {
		q.to, q.open = q.open[0], q.open[1:]
	}
	return q.to
}

// silent notes that who was asked has not answered.
func (q *question) silent() {
	if q.later == q.to {
		q.later = 0
	}
}

// toNetwork notes that the network is asked.
func (q *question) toNetwork() { q.to, q.late = 0, false }

// quoted is the packet that an ICMPv6 error quotes, nil in a reset.
func (ev Event) quoted() header.IPv6 {
	if len(ev.Packet) < ip6Len || header.IPv6(ev.Packet).Next() != header.ICMPv6 {
		return nil
	}
	quote, _ := header.IPv6(ev.Packet).Quoted(ip6Len)
	return quote
}

// named is the number of the host that was asked by itself, 0 where it was the network.
func (ev Event) named() uint16 {
	quote := ev.quoted()
	if quote == nil {
		return 0
	}
	if label := sid.LabelOf(quote); label.Retry() == sid.MaxRetry {
		return label.Refuser()
	}
	return 0
}

// later reports whether the edge that refuses says so, LATER of answer.h.
func (ev Event) later() bool {
	return ev.quoted() != nil && ev.Code == noSuchPort && header.Transport(ev.Packet[ip6Len:]).Argument() == 1
}
