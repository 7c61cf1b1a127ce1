package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Crowd is many idle flows to one address, each of which asks when it is told to. One that breaks is
// opened again at once, and asks.
type Crowd struct {
	Network, To string
	Flows       int

	round    atomic.Int64 // answers since the last order
	last     atomic.Int64 // when the last of them came
	resets   atomic.Int64
	lastGone atomic.Int64 // when the last reset came
	others   atomic.Int64 // flows that broke otherwise
	flows    []*member
	mu       sync.Mutex
	byID     map[string]int
	broken   string // how the first of the others did
	moved    int    // flows that another instance answered than before the last "fresh"
	lastMove int64
}

// A CrowdReport is what has happened since the last order.
type CrowdReport struct {
	At        int64          `json:"at"`
	Answers   int64          `json:"answers"`
	Last      int64          `json:"last"`
	Resets    int64          `json:"resets"`
	LastReset int64          `json:"last_reset"`
	Others    int64          `json:"others"`
	Broken    string         `json:"broken,omitempty"`
	ByID      map[string]int `json:"by_id"`
	Stand     map[string]int `json:"stand"` // flows by who answered them last
	Moved     int            `json:"moved"` // flows that another instance answers than before
	LastMove  int64          `json:"last_move"`
}

type member struct {
	mu   sync.Mutex
	conn net.Conn

	at, was string // who answered last, and before "fresh"; the crowd's lock
}

// opening is how many flows are opened at a time.
const opening = 32

// Run opens all flows, prints a report, and then obeys lines of in until it ends: "ask" asks on each flow,
// "leave ID" on those that the instance answered last, "fresh" forgets what happened, "report" prints it.
func (c *Crowd) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := RoomFor(c.Flows + 256); err != nil {
		return err
	}
	c.fresh()
	if err := c.open(ctx); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	if err := enc.Encode(c.report()); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		order, id, _ := strings.Cut(lines.Text(), " ")
		switch order {
		case "ask":
			c.fresh()
			c.ask(func(*member) bool { return true })
		case "leave":
			c.ask(func(m *member) bool { return m.at == id })
		case "fresh":
			c.fresh()
		}
		if err := enc.Encode(c.report()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Crowd) open(ctx context.Context) error {
	places := make(chan int)
	errs := make(chan error, opening)
	c.flows = make([]*member, c.Flows)
	for range opening {
		go func() { // ends when all places are taken
			for i := range places {
				conn, err := dial(ctx, c.Network, c.To)
				if err != nil {
					errs <- fmt.Errorf("flow %d: %w", i, err)
					return
				}
				c.flows[i] = &member{conn: conn}
				c.exchange(conn)
				go c.read(ctx, c.flows[i]) // ends with the process
			}
			errs <- nil
		}()
	}
	var err error
	for i := range c.Flows {
		select {
		case places <- i:
			continue
		case err = <-errs:
		}
		break
	}
	close(places)
	for range opening {
		if err != nil {
			return err
		}
		err = <-errs
	}
	return c.await(ctx)
}

// await waits until each was answered; a datagram that is lost is asked again.
func (c *Crowd) await(ctx context.Context) error {
	for deadline := time.Now().Add(crowdTime); ; time.Sleep(100 * time.Millisecond) {
		missing := 0
		c.mu.Lock()
		for _, m := range c.flows {
			if m.at == "" {
				missing++
			}
		}
		c.mu.Unlock()
		switch {
		case missing == 0:
			return nil
		case time.Now().After(deadline) || ctx.Err() != nil:
			return fmt.Errorf("%d of %d flows to %s were not answered", missing, c.Flows, c.To)
		case c.Network == "udp6":
			c.ask(func(m *member) bool { return m.at == "" })
		}
	}
}

const crowdTime = 30 * time.Second

func (c *Crowd) exchange(conn net.Conn) { conn.Write([]byte{cmdEcho}) } //nolint:errcheck // the reader notices

func (c *Crowd) ask(whom func(*member) bool) {
	for _, m := range c.flows {
		c.mu.Lock()
		yes := whom(m)
		c.mu.Unlock()
		if !yes {
			continue
		}
		m.mu.Lock()
		c.exchange(m.conn)
		m.mu.Unlock()
	}
}

// read counts answers; a connection that breaks is replaced by another.
func (c *Crowd) read(ctx context.Context, m *member) {
	for in := bufio.NewReaderSize(m.conn, 64); ; {
		line, err := in.ReadString('\n')
		if err == nil {
			c.answer(m, line[:len(line)-1])
			continue
		}
		if c.Network == "udp6" && !errors.Is(err, net.ErrClosed) {
			c.fail(err)
			continue
		}
		c.fail(err)
		conn, err := c.again(ctx)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.conn.Close() // it is broken
		m.conn = conn
		m.mu.Unlock()
		in = bufio.NewReaderSize(conn, 64)
		c.exchange(conn)
	}
}

// again dials until it is answered.
func (c *Crowd) again(ctx context.Context) (net.Conn, error) {
	for {
		conn, err := dial(ctx, c.Network, c.To)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *Crowd) answer(m *member, id string) {
	now := Now()
	c.last.Store(now)
	c.mu.Lock()
	c.byID[id]++
	if m.at == m.was && id != m.was && m.was != "" {
		c.moved, c.lastMove = c.moved+1, now
	}
	m.at = id
	c.mu.Unlock()
	c.round.Add(1)
}

func (c *Crowd) fail(err error) {
	if errors.Is(err, syscall.ECONNRESET) {
		c.lastGone.Store(Now())
		c.resets.Add(1)
		return
	}
	c.others.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == "" {
		c.broken = err.Error()
	}
}

func (c *Crowd) fresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID, c.broken, c.moved, c.lastMove = map[string]int{}, "", 0, 0
	for _, m := range c.flows {
		if m != nil {
			m.was = m.at
		}
	}
	for _, n := range []*atomic.Int64{&c.round, &c.last, &c.resets, &c.lastGone, &c.others} {
		n.Store(0)
	}
}

func (c *Crowd) report() CrowdReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := CrowdReport{At: Now(), Answers: c.round.Load(), Last: c.last.Load(), Resets: c.resets.Load(),
		LastReset: c.lastGone.Load(), Others: c.others.Load(), Broken: c.broken, ByID: map[string]int{}, Stand: map[string]int{}, Moved: c.moved, LastMove: c.lastMove}
	for id, n := range c.byID {
		r.ByID[id] = n
	}
	for _, m := range c.flows {
		if m != nil {
			r.Stand[m.at]++
		}
	}
	return r
}
