package checked

import (
	"context"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// behind is how many steps' worth are made up for after a standstill: no more, or the rate would be another.
const behind = 4

// send sends at the rate until stop, then tells the other end that this was all.
func (e *end) send(stop context.Context) error {
	defer e.conn.CloseWrite() //nolint:errcheck // broken: the reader knows
	switch e.rate {
	case 0:
		<-stop.Done()
		return nil
	case Bulk:
		return e.bulk(stop)
	}
	perStep := max(1, float64(e.rate)*e.step.Seconds())
	buf := make([]byte, int(behind*perStep)+1)
	tick := time.NewTicker(e.step)
	defer tick.Stop()
	for last, owed := agent.Now(), perStep; ; { // the first step is due now: who looks for the first byte waits for none of ours
		n, err := e.write(buf[:int(owed)])
		owed -= float64(n)
		if err != nil {
			return err
		}
		select {
		case <-stop.Done():
			return nil
		case <-tick.C:
		}
		now := agent.Now()
		owed, last = min(owed+float64(now-last)/1e9*float64(e.rate), behind*perStep), now
	}
}

func (e *end) bulk(stop context.Context) error {
	buf := make([]byte, 64<<10)
	for stop.Err() == nil {
		if _, err := e.write(buf); err != nil {
			return err
		}
	}
	return nil
}

// write sends the next bytes of the pattern.
func (e *end) write(b []byte) (int, error) {
	e.out.Fill(b, e.sent.Load())
	n, err := e.conn.Write(b)
	e.sent.Add(uint64(n))
	return n, err
}
