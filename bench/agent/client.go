package agent

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// A Result is what one client run measured.
type Result struct {
	Ops     int64          `json:"ops"`     // requests, connections or datagrams answered
	Bytes   int64          `json:"bytes"`   // streamed
	Nanos   int64          `json:"nanos"`   // how long it ran
	Errors  int64          `json:"errors"`  // requests that failed
	Lost    int64          `json:"lost"`    // datagrams never answered
	ByID    map[string]int `json:"by_id"`   // answers per instance
	FirstID string         `json:"firstId"` // instance of the first answer
}

// PerSecond is the rate of operations.
func (r Result) PerSecond() float64 { return float64(r.Ops) / (float64(r.Nanos) / 1e9) }

// GbitPerSecond is the rate of the stream.
func (r Result) GbitPerSecond() float64 { return float64(r.Bytes) * 8 / float64(r.Nanos) }

// Stream sends to addr for d over one TCP connection; what counts is what the kernel took.
func Stream(ctx context.Context, addr string, d time.Duration) (Result, error) {
	c, err := dial(ctx, "tcp6", addr)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	buf := make([]byte, 256<<10)
	buf[0] = cmdSink
	var r Result
	start := Now()
	for Now()-start < int64(d) && ctx.Err() == nil {
		n, err := c.Write(buf)
		r.Bytes += int64(n)
		if err != nil {
			return r, fmt.Errorf("stream to %s broke after %d bytes: %w", addr, r.Bytes, err)
		}
	}
	r.Nanos = Now() - start
	return r, nil
}

// RequestResponse sends one byte and waits for the answer, again and again, over one TCP connection
// or one UDP socket.
func RequestResponse(ctx context.Context, network, addr string, d time.Duration) (Result, error) {
	c, err := dial(ctx, network, addr)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	r := Result{ByID: map[string]int{}}
	in := bufio.NewReaderSize(c, 65536)
	start := Now()
	for Now()-start < int64(d) && ctx.Err() == nil {
		id, err := exchange(c, in)
		if err != nil && strings.HasPrefix(network, "udp") {
			r.Lost++
			continue
		}
		if err != nil {
			return r, fmt.Errorf("request %d to %s: %w", r.Ops+1, addr, err)
		}
		r.count(id)
	}
	r.Nanos = Now() - start
	return r, nil
}

// ConnectLoop connects, asks once and closes, n times or for d, whichever ends first (0: no limit);
// each, if not nil, is told of every request.
func ConnectLoop(ctx context.Context, network, addr string, n int, d time.Duration, each func(Request)) Result {
	r := Result{ByID: map[string]int{}}
	start := Now()
	for i := 0; (n == 0 || i < n) && (d == 0 || Now()-start < int64(d)) && ctx.Err() == nil; i++ {
		q := Ask(ctx, network, addr)
		if q.Err != "" {
			r.Errors++
		} else {
			r.count(q.ID)
		}
		if each != nil {
			each(q)
		}
	}
	r.Nanos = Now() - start
	return r
}

// A Request is one connection with one question.
type Request struct {
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	ID    string `json:"id"`  // of the instance that answered
	Err   string `json:"err"` // "" when answered
}

// Ask opens a connection (or a datagram socket), asks once and closes. It waits two seconds at most.
func Ask(ctx context.Context, network, addr string) (q Request) {
	q.Start = Now()
	defer func() { q.End = Now() }()
	c, err := dial(ctx, network, addr)
	if err != nil {
		q.Err = err.Error()
		return q
	}
	defer c.Close()
	if q.ID, err = exchange(c, bufio.NewReader(c)); err != nil {
		q.Err = err.Error()
	}
	return q
}

func (r *Result) count(id string) {
	if r.Ops == 0 {
		r.FirstID = id
	}
	r.Ops++
	r.ByID[id]++
}

// answerTime bounds one exchange, so that a cut path cannot hang a run.
const answerTime = 2 * time.Second

func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: answerTime}
	return d.DialContext(ctx, network, addr)
}

func exchange(c net.Conn, in *bufio.Reader) (id string, err error) {
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte{cmdEcho}); err != nil {
		return "", err
	}
	line, err := in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
