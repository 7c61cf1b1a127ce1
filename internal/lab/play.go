package lab

import (
	"context"
	"fmt"
	"time"
)

// Play goes through the timeline of a lab that is up and takes its measurements, as Run does, and leaves the lab
// up. Others cannot take it down meanwhile. With an error the result holds what there was until then.
func (l *Lab) Play(ctx context.Context) (*Result, error) {
	release, err := l.place.acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := l.place.read()
	if err != nil {
		return nil, err
	}
	if s == nil { // it went before we had the lock
		return nil, fmt.Errorf("lab %s: %w", l.File.Name, ErrNone)
	}
	return l.play(ctx)
}

func (l *Lab) play(ctx context.Context) (*Result, error) {
	r := &runner{lab: l, began: time.Now()}
	r.result.Name, r.result.Title = l.File.Name, l.File.Title
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r.watch(watching)
	err := r.timeline(ctx)
	stop()
	r.watched()
	if err != nil {
		return &r.result, err
	}
	r.result.Certificate = l.certificate(ctx)
	return &r.result, nil
}
