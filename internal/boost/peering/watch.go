package peering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// ErrSilent says that the other agent is not heard any more: its machine, or the way to it, is gone.
var ErrSilent = errors.New("the other agent does not answer")

// questions is how many PINGs go unanswered before an agent is taken for gone. One alone is lost with a segment, which
// TCP sends again after 200 ms and more.
const questions = 4

// watch asks the other agent by PINGs whether it is there, and answers its own, until the connection ends, the other agent
// is silent for so long, or ctx ends.
func (w *watcher) watch(ctx context.Context) error {
	conn := w.conn
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var asking sync.WaitGroup
	asking.Go(func() { w.ask(ctx) })
	err := w.listen()
	end()
	asking.Wait()
	return err
}

// A watcher is one end of a control connection.
type watcher struct {
	conn    net.Conn
	silence time.Duration
	ping    func(number uint64) frame.Header // what is said in each PING; nil: nothing
	soon    <-chan struct{}                  // the next one is to be said now
	wanted  func(connections int)            // what the other agent says in its own; nil: nobody wants to know
	mu      sync.Mutex                       // of what is written
}

func (w *watcher) send(h frame.Header) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn.SetWriteDeadline(time.Now().Add(w.silence))
	_, err := w.conn.Write(h.Append(nil))
	return err
}

func (w *watcher) ask(ctx context.Context) {
	tick := time.NewTicker(w.silence / questions)
	defer tick.Stop()
	for number := uint64(1); ; number++ {
		h := frame.Ping(number)
		if w.ping != nil {
			h = w.ping(number)
		}
		if w.send(h) != nil {
			w.conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-w.soon:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) listen() error {
	var b [frame.HeaderLen]byte
	for {
		w.conn.SetReadDeadline(time.Now().Add(w.silence))
		if _, err := io.ReadFull(w.conn, b[:]); err != nil {
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				return ErrSilent
			}
			return err
		}
		h, err := frame.ParseHeader(b[:])
		switch {
		case err != nil:
			return err
		case h.Type != frame.TypePing:
			return fmt.Errorf("frame %v came on the control connection, which carries HELLO and PING", h.Type)
		case !h.IsAnswer():
			w.wish(h)
			if err := w.send(h.Answered()); err != nil {
				return err
			}
		}
	}
}

// ofBefore is how many data connections an agent wants that does not say it: those of before this could not, and had so many
// unless their file said another number.
const ofBefore = 4

// wish takes what the other agent's PING says of the connections that it wants. What nobody may want says nothing.
func (w *watcher) wish(h frame.Header) {
	if w.wanted == nil {
		return
	}
	switch n, ok := h.Wanted(); {
	case ok:
		w.wanted(n)
	case h.Flags == 0:
		w.wanted(ofBefore)
	}
}
