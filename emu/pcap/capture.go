// Package pcap writes what crosses emulated links into files that tcpdump and Wireshark read, and reads such files
// to be played into a network ([emu.Net.Play]).
package pcap

import (
	"encoding/binary"
	"io"
	"sync"
	"time"

	"scaffold.dev/scaffold/emu"
)

// MaxFrame is the longest frame of a capture, in bytes.
const MaxFrame = 1 << 18

// bufferSize is how much may wait until it is written, for each of two buffers: a second of 30 Mbit/s. What does not
// fit is counted and not in the capture; the network never waits.
const bufferSize = 4 << 20

// A Capture writes what arrives over a link, in both directions, as it comes.
type Capture struct {
	began time.Time // the zero of the network's clock
	out   io.Writer
	file  *Writer
	stop  func() error
	wake  chan struct{}
	quit  chan struct{}
	gone  chan struct{}
	err   error // of the writer; read after gone is closed

	mu      sync.Mutex
	filling []byte
	missed  uint64
	written []byte // the other buffer, the writer's
}

// Start begins a capture in the classic format with nanoseconds. Times are those of the network's clock, counted
// from began.
func Start(w io.Writer, l *emu.Link, began time.Time) (*Capture, error) {
	file, err := NewWriter(w, Ethernet)
	if err != nil {
		return nil, err
	}
	c := &Capture{began: began, out: w, file: file, wake: make(chan struct{}, 1), quit: make(chan struct{}), gone: make(chan struct{}),
		filling: make([]byte, 0, bufferSize), written: make([]byte, 0, bufferSize)}
	if c.stop, err = l.Watch(c.see); err != nil {
		return nil, err
	}
	c.flush() // who has the header knows that all that comes from now on is seen
	go c.write()
	return c, nil
}

// flush lets a client over HTTP see packets when they come.
func (c *Capture) flush() {
	if f, ok := c.out.(interface{ Flush() }); ok {
		f.Flush()
	}
}

// head is what stands in front of each frame in a buffer: its time and its length.
const head = 8 + 4

// see takes note of a frame on the network's thread, which it does not keep waiting.
func (c *Capture) see(_ int, at time.Duration, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.filling)+head+len(frame) > bufferSize {
		c.missed++
		return
	}
	first := len(c.filling) == 0
	c.filling = binary.LittleEndian.AppendUint64(c.filling, uint64(at))
	c.filling = binary.LittleEndian.AppendUint32(c.filling, uint32(len(frame)))
	c.filling = append(c.filling, frame...)
	if first {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// write empties one buffer while the other one fills.
func (c *Capture) write() {
	defer close(c.gone)
	for {
		select {
		case <-c.wake:
		case <-c.quit:
			c.err = c.drain()
			return
		}
		if c.err = c.drain(); c.err != nil {
			return
		}
	}
}

func (c *Capture) drain() error {
	c.mu.Lock()
	c.filling, c.written = c.written[:0], c.filling
	c.mu.Unlock()
	for b := c.written; len(b) > 0; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		at := c.began.Add(time.Duration(binary.LittleEndian.Uint64(b)))
		if err := c.file.Write(at, b[head:head+n], n); err != nil {
			return err
		}
		b = b[head+n:]
	}
	c.flush()
	return nil
}

// Failed is closed when the capture has ended, by Stop or because nobody takes what is written.
func (c *Capture) Failed() <-chan struct{} { return c.gone }

// Stop ends the capture when everything is written. It says how many frames are missing because they came faster
// than they could be written.
func (c *Capture) Stop() (missed uint64, err error) {
	err = c.stop()
	close(c.quit)
	<-c.gone
	if err == nil {
		err = c.err
	}
	return c.missed, err
}
