package hosts

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// A host is a stream, and what its daemon would know.
type host struct {
	number  int
	name    string
	router  string
	serves  []sid.ServiceID
	key     ed25519.PrivateKey // nil in an open network
	mu      sync.Mutex
	stream  *stream // the present one
	refused int     // times that it had to ask again
}

// againLast is the longest wait of a host that comes again, as hostd's.
const againLast = time.Second

// join comes until it is let in, and says then what it serves. The stream ends with ctx, not with the deadline.
func (h *host) join(ctx context.Context, dial dialer, deadline time.Time) error {
	to, err := dial(h.name)
	if err != nil {
		return err
	}
	patience := member.Patience{Last: againLast}
	for {
		err := h.joinOnce(ctx, to)
		if err == nil || errors.Is(err, member.ErrFinal) || time.Now().After(deadline) {
			return err
		}
		h.refused++
		if !member.Pause(ctx, patience.Next(false, err, false), nil) {
			return errors.Join(err, ctx.Err())
		}
	}
}

func (h *host) joinOnce(ctx context.Context, to api.Endpoint) error {
	stream, err := open(ctx, to)
	if err != nil {
		return fmt.Errorf("join %s: %w", h.name, err)
	}
	h.mu.Lock()
	if h.stream != nil {
		h.stream.close()
	}
	h.stream = stream
	h.mu.Unlock()
	j := &apiv1.Join{
		Name: h.name, BootId: "crowd", Netns: h.name, Version: "crowd", Identity: uint64(1)<<32 | uint64(h.number),
		Attachment: &apiv1.Attachment{
			Router: h.router, Port: h.name, LinkLocal: "fe80::1", Mac: []byte{2, 0, 0, byte(h.number >> 16), byte(h.number >> 8), byte(h.number)}, Mtu: 1500,
		},
	}
	if h.key != nil {
		api.SignJoin(j, h.key, time.Now())
	}
	if _, err := member.Join(stream, h.name, &apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: j}}); err != nil {
		return fmt.Errorf("join %s: %w", h.name, err)
	}
	return h.report(true, h.serves, false)
}

// now is the host's present stream.
func (h *host) now() *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stream
}

// listen reads orders until the stream ends.
func (h *host) listen() error {
	stream := h.now()
	for {
		if _, err := stream.next(); err != nil {
			return err
		}
	}
}

// report says what the host serves, all of it or a change.
func (h *host) report(all bool, services []sid.ServiceID, gone bool) error {
	m := &apiv1.Registrations{}
	for _, s := range services {
		m.Entries = append(m.Entries, &apiv1.Registration{Ss: s.SS, Suffix: uint64(s.Suffix), Proto: uint32(sid.TCP), Port: 80, Ready: !gone, Gone: gone})
	}
	if all {
		return h.now().Send(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: m}})
	}
	return h.now().Send(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: m}})
}

// load is what a host's daemon says each second.
func (h *host) load() error {
	l := &apiv1.Load{Flows: 10, Cpu: 0.1}
	for _, s := range h.serves {
		l.Triples = append(l.Triples, &apiv1.TripleLoad{Ss: s.SS, Suffix: uint64(s.Suffix), Proto: uint32(sid.TCP), Port: 80, Flows: 1, Backlog: 128})
	}
	return h.now().Send(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: l}})
}
