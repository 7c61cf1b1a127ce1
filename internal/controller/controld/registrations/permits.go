package registrations

import (
	"crypto/rand"
	"errors"
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
func (x *Registrations) permitted(h *host, t sid.Triple, r names.Record, w *wish) (kind, why string) {
	refuse := func(err error) (string, string) {
		return "permit", fmt.Sprintf("service %s has a key: %v: `scaffold service delegate %s --host %s` makes a permit", r.Name, err, r.Name, h.name)
	}
	if len(w.permit) == 0 {
		return refuse(fmt.Errorf("host %s shows no permit", h.name))
	}
	p, err := wire.ParsePermit(w.permit)
	if err != nil {
		return refuse(err)
	}
	now := time.Now().Unix()
	if w.proved {
		err = p.Current(now)
	} else if err = x.permitFor(h, &p, r.ID, r.Access.Key, now); err == nil && !w.stood {
		err = wire.Stand{Challenge: h.challenge, Triple: t}.Check(h.shown, w.signature)
	}
	if err != nil {
		if errors.Is(err, wire.ErrPermitLate) {
			err = fmt.Errorf("%w at %s", err, time.Unix(p.NotAfter, 0).UTC().Format(time.RFC3339))
		}
		return refuse(err)
	}
	w.proved = true
	if end := time.Unix(p.NotAfter, 0); !w.Until.Equal(end) {
		w.Until = end
		x.watchPermit(h, t, p)
	}
	return "", ""
}

// watchPermit warns before a permit expires, and withdraws the instance when it has.
func (x *Registrations) watchPermit(h *host, t sid.Triple, p wire.Permit) {
	now := time.Now()
	next := time.Unix(p.NotAfter+1, 0)
	if w := h.wanted[t]; !w.Warned {
		next = warnAt(p)
	}
	wait := min(max(next.Sub(now), 0), permitLook)
	x.Loop.After(wait, func() { x.permitDue(h, t, p) })
}

// warnAt is when an hour is left, or a tenth of the permit's time where that is less.
func warnAt(p wire.Permit) time.Time {
	return time.Unix(p.NotAfter-min(int64(time.Hour/time.Second), (p.NotAfter-p.NotBefore)/10), 0)
}

func (x *Registrations) permitDue(h *host, t sid.Triple, p wire.Permit) {
	w, ok := h.wanted[t]
	r, known := x.Services.ByID(t.Service)
	if !ok || !w.Until.Equal(time.Unix(p.NotAfter, 0)) || !w.Up || !known {
		return // another one, or none
	}
	now := time.Now()
	if now.Unix() > p.NotAfter {
		w.Until = time.Time{}
		x.put(h, t, w)
		x.judge(h, t)
		return
	}
	if !w.Warned && !now.Before(warnAt(p)) {
		w.Warned = true
		x.put(h, t, w)
		x.Events.Tell("permit.expiring", r.Name, fmt.Sprintf("%s %v/%d: its permit expires at %s: `scaffold service delegate %s --host %s` makes another", h.name, t.Proto, t.Port,
			time.Unix(p.NotAfter, 0).UTC().Format(time.RFC3339), r.Name, h.name), "host", h.name)
	}
	x.watchPermit(h, t, p)
}

// permitFor checks a permit for one of the host's keys.
func (x *Registrations) permitFor(h *host, p *wire.Permit, id sid.ServiceID, service []byte, now int64) (err error) {
	for _, key := range x.Hosts.Keys(h.name, h.shown) {
		if err = p.Check(id, service, key, now); err == nil {
			return nil
		}
	}
	return p.Check(id, service, h.shown, now)
}
