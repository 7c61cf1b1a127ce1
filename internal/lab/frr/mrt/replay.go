package mrt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Options say what of a recording is replayed and how fast.
type Options struct {
	Speed float64    // 2 is twice as fast as recorded; 0 is as fast as the daemon takes it
	Peer  netip.Addr // the updates of this peer alone; invalid: of all, as if one had said them
}

// Said counts what a replay did.
type Said struct {
	Updates int           // records that were said again
	Left    int           // records of other peers, or without a route that can be said
	Unknown int           // records of types that hold no update
	Bad     int           // records that are damaged or come to no message
	First   error         // the first of these, nil if there are none
	Late    time.Duration // the most that an update was sent after its time
}

// Replay says the updates of a recording again, each as long after the first as it was recorded, divided by the
// speed. The routes stay until the session ends.
func (s *Session) Replay(ctx context.Context, recording io.Reader, o Options) (said Said, err error) {
	if o.Speed < 0 {
		return said, fmt.Errorf("speed %g of a replay: want 0, as fast as it goes, or more", o.Speed)
	}
	in := NewReader(recording)
	clock := pace{speed: o.Speed}
	for {
		r, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s.total(said, in), fmt.Errorf("recording: %w", err)
		}
		if o.Peer.IsValid() && r.Peer != o.Peer {
			said.Left++
			continue
		}
		late, err := clock.wait(ctx, s.done, r.Time)
		if err != nil {
			return s.total(said, in), errors.Join(err, s.Err())
		}
		said.Late = max(said.Late, late)
		if err := s.say(r, &said); err != nil {
			return s.total(said, in), err
		}
	}
	return s.total(said, in), nil
}

func (s *Session) total(said Said, in *Reader) Said {
	said.Unknown, said.Bad = in.Unknown, said.Bad+in.Bad
	if in.First != nil {
		said.First = in.First
	}
	return said
}

// say sends one record; an error is the session's end.
func (s *Session) say(r Record, said *Said) error {
	messages, err := s.speaker.rewrite(r.update)
	if err == nil {
		err = sendable(messages)
	}
	if err != nil {
		if said.Bad++; said.First == nil {
			said.First = fmt.Errorf("update of %v: %w", r.Time.UTC(), err)
		}
		return nil
	}
	if len(messages) == 0 {
		said.Left++
		return nil
	}
	for _, m := range messages {
		if err := s.send(m); err != nil {
			<-s.done // it knows better why
			return s.Err()
		}
	}
	said.Updates++
	return nil
}

// sendable is an error for a message that grew too long, or that the library cannot write.
func sendable(messages []*bgp.BGPMessage) error {
	for _, m := range messages {
		if _, err := m.Serialize(); err != nil {
			return err
		}
	}
	return nil
}

// A pace keeps the distances of the records.
type pace struct {
	speed        float64
	first, start time.Time // of the recording, of the replay
}

// wait returns at the time of a record, and how much later.
func (p *pace) wait(ctx context.Context, ended <-chan struct{}, at time.Time) (late time.Duration, err error) {
	if p.start.IsZero() {
		p.first, p.start = at, time.Now()
	}
	if p.speed == 0 {
		return 0, ctx.Err()
	}
	due := p.start.Add(time.Duration(float64(at.Sub(p.first)) / p.speed))
	left := time.Until(due)
	if left <= 0 {
		return -left, ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Since(due), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-ended:
		return 0, errors.New("the session ended during the replay")
	}
}
