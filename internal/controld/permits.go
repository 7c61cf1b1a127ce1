package controld

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// challengeLen is the size of what a host's signatures in a session quote.
const challengeLen = 16

// permitLook is how often a permit is looked at at least: a clock may be set.
const permitLook = time.Minute

// challenge makes what tells a session's signatures from those of any other.
func challenge() []byte {
	b := make([]byte, challengeLen)
	rand.Read(b) // never fails (crypto/rand)
	return b
}

// permitted says why a host's permit does not let it serve a service with a key.
func (n *network) permitted(h *host, t sid.Triple, r names.Record, w *wish) (kind, why string) {
	refuse := func(err error) (string, string) {
		return "permit", fmt.Sprintf("service %s has a key: %v: `scaffold service delegate %s --host %s` makes a permit", r.Name, err, r.Name, h.Name)
	}
	if len(w.permit) == 0 {
		return refuse(fmt.Errorf("host %s shows no permit", h.Name))
	}
	p, err := wire.ParsePermit(w.permit)
	if err != nil {
		return refuse(err)
	}
	now := time.Now().Unix()
	if w.proved {
		err = p.Current(now)
	} else if err = n.permitFor(h, &p, r.ID, r.Access.Key, now); err == nil {
		err = wire.Stand{Challenge: h.challenge, Triple: t}.Check(h.shown, w.signature)
	}
	if err != nil {
		if err == wire.ErrPermitLate {
			err = fmt.Errorf("%w at %s", err, time.Unix(p.NotAfter, 0).UTC().Format(time.RFC3339))
		}
		return refuse(err)
	}
	w.proved = true
	if w.until != p.NotAfter {
		w.until = p.NotAfter
		n.watchPermit(h, t, p)
	}
	return "", ""
}

// watchPermit warns before a permit expires, and withdraws the instance when it has.
func (n *network) watchPermit(h *host, t sid.Triple, p wire.Permit) {
	now := time.Now()
	next := time.Unix(p.NotAfter+1, 0)
	if w := h.wanted[t]; !w.warned {
		next = warnAt(p)
	}
	wait := min(max(next.Sub(now), 0), permitLook)
	n.loop.after(wait, func() { n.permitDue(h, t, p) })
}

// warnAt is when an hour is left, or a tenth of the permit's time where that is less.
func warnAt(p wire.Permit) time.Time {
	return time.Unix(p.NotAfter-min(int64(time.Hour/time.Second), (p.NotAfter-p.NotBefore)/10), 0)
}

func (n *network) permitDue(h *host, t sid.Triple, p wire.Permit) {
	w, ok := h.wanted[t]
	r, known := n.names.ByID(t.Service)
	if !ok || w.until != p.NotAfter || !w.up || !known {
		return // another one, or none
	}
	now := time.Now()
	if now.Unix() > p.NotAfter {
		w.until = 0
		h.wanted[t] = w
		n.judge(h, t)
		return
	}
	if !w.warned && !now.Before(warnAt(p)) {
		w.warned = true
		h.wanted[t] = w
		n.event("permit.expiring", r.Name, fmt.Sprintf("%s %v/%d: its permit expires at %s: `scaffold service delegate %s --host %s` makes another", h.Name, t.Proto, t.Port,
			time.Unix(p.NotAfter, 0).UTC().Format(time.RFC3339), r.Name, h.Name), "host", h.Name)
	}
	n.watchPermit(h, t, p)
}

// showKey notes whose key a session's Join bore. Instances that another key proved do not go on under it, unless that key
// is the host's of before.
func (n *network) showKey(h *host, key []byte, succeeded bool) {
	for t, w := range h.wanted {
		if len(w.permit) > 0 && !bytes.Equal(h.shown, key) && !succeeded {
			n.withdraw(h, t)
		}
	}
	h.shown, h.challenge = key, challenge()
}

// publicKey is what permits for the host name: the key that its name is bound to, or else that of its session.
func (h *host) publicKey() []byte {
	if len(h.Key) > 0 {
		return h.Key
	}
	return h.shown
}
