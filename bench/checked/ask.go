package checked

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// A questioner is the client's end of a datagram flow.
type questioner struct {
	conn  net.Conn
	log   *Log
	about Note
	d     datagram
	gap   time.Duration

	mu       sync.Mutex
	tally    tally
	last     int64
	server   string
	failures uint64
}

// answerTime is how long answers are waited for after the last question.
const answerTime = time.Second

// datagrams asks every step until life ends.
func (l Load) datagrams(ctx, life context.Context, n uint64, log *Log) error {
	var dial net.Dialer
	c, err := dial.DialContext(ctx, l.Network, l.To)
	if err != nil {
		log.note(Note{Kind: Refused, At: agent.Now(), Flow: n, Proto: "udp", Client: true, Peer: l.To, Err: err.Error()})
		return err
	}
	defer c.Close()
	q := &questioner{conn: c, log: log, gap: l.Gap, last: agent.Now()}
	q.about = Note{Flow: n, Proto: "udp", Client: true, Local: c.LocalAddr().String(), Peer: l.To}
	q.d = datagram{flow: n, seed: l.Seed ^ n*0x9E3779B97F4A7C15}
	q.note(Began, nil)
	var reader sync.WaitGroup
	reader.Go(q.read)
	q.ask(life, l.Step)
	c.SetReadDeadline(time.Now().Add(answerTime)) // it is open
	reader.Wait()
	q.note(Ended, nil)
	return nil
}

func (q *questioner) ask(life context.Context, step time.Duration) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	report := time.NewTicker(ReportEvery)
	defer report.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-report.C:
			q.note(Progress, nil)
			continue
		case <-tick.C:
		}
		q.mu.Lock()
		q.tally.ask(q.d.seq)
		q.mu.Unlock()
		if _, err := q.conn.Write(q.d.append(nil, Up(q.d.seed))); err != nil {
			q.fail()
		}
		q.d.seq++
	}
}

func (q *questioner) fail() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures++
}

// read ends at the deadline that follows the last question.
func (q *questioner) read() {
	buf := make([]byte, 65536)
	for {
		n, err := q.conn.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed):
			return
		case err != nil: // a refusal of one datagram; the next may be taken
			q.fail()
			continue
		}
		q.take(buf[:n])
	}
}

func (q *questioner) take(b []byte) {
	now := agent.Now()
	d, server, ok := parseDatagram(b, false)
	if !ok || d.flow != q.d.flow {
		q.note(Wrong, func(n *Note) { n.Err = fmt.Sprintf("answer %d of flow %d is not what was sent", d.seq, d.flow) })
		return
	}
	q.mu.Lock()
	q.tally.answer(d.seq)
	q.server = string(server)
	last := q.last
	q.last = now
	q.mu.Unlock()
	if now-last >= int64(q.gap) {
		q.note(Gap, func(n *Note) { n.At, n.From = now, last })
	}
}

func (q *questioner) note(kind string, change func(*Note)) {
	n := q.about
	n.Kind, n.At = kind, agent.Now()
	q.mu.Lock()
	n.Received, n.Sent = q.tally.answered, q.tally.answered+uint64(len(q.tally.open))
	n.Last, n.Server, n.Duplicates, n.Failures = q.last, q.server, q.tally.duplicates, q.failures
	n.Lost = uint64(q.tally.overtaken())
	if kind == Ended {
		n.Lost = uint64(len(q.tally.open))
	}
	q.mu.Unlock()
	if change != nil {
		change(&n)
	}
	q.log.note(n)
}
