package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// lastAnswers is how long answers are waited for after the last request.
const lastAnswers = time.Second

// A writer has one socket for each partition.
type writer struct {
	value      []byte
	keys       *rand.Rand
	partitions []*partition
	readers    sync.WaitGroup
}

// A partition is one of the names that share the keys.
type partition struct {
	conn   *net.UDPConn
	sent   int
	failed int // requests that the kernel refused: nobody serves the partition, it was told

	mu       sync.Mutex
	stored   int
	other    string // an answer that is not STORED
	answered time.Time
	pause    time.Duration // the longest time between two answers
}

func newWriter(partitions []string, size int, seed uint64) (*writer, error) {
	if len(partitions) == 0 || size < 1 || size > 1300 {
		return nil, errors.New("want partitions as host:port, and values of 1 to 1300 bytes")
	}
	w := &writer{value: bytes.Repeat([]byte("x"), size), keys: rand.New(rand.NewPCG(seed, 0))}
	for _, name := range partitions {
		addr, err := net.ResolveUDPAddr("udp6", name)
		if err != nil {
			return nil, err
		}
		conn, err := net.DialUDP("udp6", nil, addr)
		if err != nil {
			return nil, err
		}
		w.partitions = append(w.partitions, &partition{conn: conn})
	}
	return w, nil
}

// run sends at the rate, in portions of a millisecond, and waits for the last answers.
func (w *writer) run(rate int, span time.Duration) {
	for _, p := range w.partitions {
		w.readers.Go(p.read)
	}
	begin := time.Now()
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for n := 0; ; <-t.C {
		elapsed := time.Since(begin)
		if elapsed > span {
			break
		}
		for due := int(elapsed.Seconds() * float64(rate)); n < due; n++ {
			w.set(uint16(n))
		}
	}
	time.Sleep(lastAnswers)
	for _, p := range w.partitions {
		p.conn.Close()
	}
	w.readers.Wait()
}

// set writes a random key.
func (w *writer) set(id uint16) {
	key := fmt.Sprintf("key-%08x", w.keys.Uint32())
	h := fnv.New32a()
	h.Write([]byte(key))
	p := w.partitions[h.Sum32()%uint32(len(w.partitions))]
	p.sent++
	if _, err := p.conn.Write(request(id, key, w.value)); err != nil {
		p.failed++
	}
}

// request is a set command in a datagram: its number, that it is datagram 0 of 1, and the text.
func request(id uint16, key string, value []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = append(b, 0, 0, 0, 1, 0, 0)
	b = fmt.Appendf(b, "set %s 0 0 %d\r\n", key, len(value))
	return append(append(b, value...), "\r\n"...)
}

// header is how long that of a datagram is.
const header = 8

func (p *partition) read() {
	b := make([]byte, 2048)
	for {
		n, err := p.conn.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n > header {
			p.answer(string(bytes.TrimSpace(b[header:n])))
		}
	}
}

func (p *partition) answer(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != "STORED" {
		p.other = text
		return
	}
	now := time.Now()
	if !p.answered.IsZero() {
		p.pause = max(p.pause, now.Sub(p.answered))
	}
	p.stored, p.answered = p.stored+1, now
}

// report is what came of it.
func (w *writer) report() string {
	var sent, stored, failed int
	var pause time.Duration
	other := ""
	for _, p := range w.partitions {
		p.mu.Lock()
		sent, stored, failed, pause = sent+p.sent, stored+p.stored, failed+p.failed, max(pause, p.pause)
		if p.other != "" {
			other = fmt.Sprintf("; the last other answer was %q", p.other)
		}
		p.mu.Unlock()
	}
	return fmt.Sprintf("%d writes, %d stored, %d not answered, %d refused by the kernel; longest pause of a partition %v%s",
		sent, stored, sent-stored-failed, failed, pause.Round(100*time.Microsecond), other)
}
