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
func watch(ctx context.Context, conn net.Conn, silence time.Duration) error {
	w := &watcher{conn: conn, silence: silence}
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
	mu      sync.Mutex // of what is written
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
		if w.send(frame.Ping(number)) != nil {
			w.conn.Close()
			return
		}
		select {
		case <-tick.C:
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
			if err := w.send(h.Answered()); err != nil {
				return err
			}
		}
	}
}
