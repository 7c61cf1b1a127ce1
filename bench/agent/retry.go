package agent

import (
	"bufio"
	"context"
	"net"
	"time"
)

// A Retry is one connection that broke, and the answer that the next one got.
type Retry struct {
	Broke    int64  `json:"broke"`    // when the client was told
	Answered int64  `json:"answered"` // when another connection was answered first
	Err      string `json:"err"`
	From     string `json:"from"` // instance of the connection that broke, "" at the start
	To       string `json:"to"`
}

// retryPace is how often the client asks: it would keep a processor busy alone otherwise.
const retryPace = 500 * time.Microsecond

// RetryLoop is a plain client that asks over one connection, and over another one when that breaks, until ctx
// ends. It tells of each beginning.
func RetryLoop(ctx context.Context, addr string, tell func(Retry)) {
	var last Retry
	for ctx.Err() == nil {
		c, err := dial(ctx, "tcp6", addr)
		if err == nil {
			err = last.ask(ctx, c, tell)
		}
		if last.Broke == 0 { // else it still looks for another
			last.Broke, last.Err = Now(), err.Error()
		}
	}
}

// ask asks until the connection breaks; the first answer ends the time without one.
func (r *Retry) ask(ctx context.Context, c net.Conn, tell func(Retry)) error {
	defer c.Close()
	in := bufio.NewReader(c)
	for ctx.Err() == nil {
		id, err := exchange(c, in)
		if err != nil {
			return err
		}
		if r.Broke != 0 || r.To == "" {
			r.From, r.To, r.Answered = r.To, id, Now()
			tell(*r)
			r.Broke, r.Err = 0, ""
		}
		time.Sleep(retryPace)
	}
	return ctx.Err()
}
