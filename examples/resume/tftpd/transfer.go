package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// saveEvery is how many blocks a transfer goes on before its place is written down again. The record tells
// the 16 bits of an acknowledgement apart, so it has to be right within half of them.
const saveEvery = 64

// How long an answer is waited for, and how often it is asked for.
const (
	resendAfter = time.Second
	resendMost  = 8
)

// A place is how far a transfer has come: what the instances share.
type place struct {
	Request request
	Size    int64 // of the file
	Begun   bool  // the options, if any, were acknowledged
	Acked   int64 // blocks that the client has, at least
}

// A transfer is one file on its way to one client.
type transfer struct {
	place
	key   string
	file  *os.File
	last  []byte // the datagram that waits for an answer
	tries int
	again time.Time
	here  bool // it began at this instance
}

// begin opens what is asked for.
func begin(root *os.Root, key string, r request) (*transfer, error) {
	t := &transfer{key: key, here: true, place: place{Request: r}}
	if err := t.open(root); err != nil {
		return nil, err
	}
	t.Request.Size = r.Size && t.Size > 0 // curl takes a size of 0 for nonsense
	t.Begun = r.Block == 0 && !t.Request.Size
	return t, nil
}

// resume goes on with a transfer that began elsewhere.
func resume(root *os.Root, key string, at place) (*transfer, error) {
	t := &transfer{key: key, place: at}
	if err := t.open(root); err != nil {
		return nil, err
	}
	if t.Size != at.Size {
		t.file.Close()
		return nil, &refused{errUndefined, fmt.Sprintf("%s is not the file any more that the transfer began with", at.Request.Name)}
	}
	return t, nil
}

func (t *transfer) open(root *os.Root) error {
	name := path.Clean("/" + t.Request.Name)[1:]
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return &refused{errNotFound, fmt.Sprintf("%s: there is no such file", t.Request.Name)}
	}
	if t.file, err = root.Open(name); errors.Is(err, fs.ErrNotExist) {
		return &refused{errNotFound, fmt.Sprintf("%s: there is no such file", t.Request.Name)}
	}
	t.Size = info.Size()
	return err
}

func (t *transfer) block() int64 {
	if t.Request.Block > 0 {
		return int64(t.Request.Block)
	}
	return plainBlock
}

// blocks is how many a file has: the last one is shorter than the others, if only empty.
func (t *transfer) blocks() int64 { return t.Size/t.block() + 1 }

// next is the datagram that the client is to get now: its options' acknowledgement, or a block.
func (t *transfer) next(now time.Time) ([]byte, error) {
	t.tries, t.again = 0, now.Add(resendAfter)
	if !t.Begun {
		t.last = appendOptAck(t.last[:0], t.Request, t.Size)
		return t.last, nil
	}
	t.last = appendHeader(t.last[:0], opData, uint16(t.Acked+1))
	b := make([]byte, t.block())
	n, err := t.file.ReadAt(b, t.Acked*t.block())
	if err != nil && err != io.EOF {
		return nil, err
	}
	t.last = append(t.last, b[:n]...)
	return t.last, nil
}

// acked takes an acknowledgement. It reports whether it is the one that was waited for, or, of a transfer
// that began elsewhere, tells how far it has come; others are repetitions, which RFC 1123 §4.2.3.1 says
// not to answer.
func (t *transfer) acked(block uint16) bool {
	n := t.extend(block)
	switch {
	case !t.Begun && n == 0:
		t.Begun = true
	case t.last == nil && n >= 0 && n <= t.blocks(): // the first word here
		t.Begun, t.Acked = true, n
	case t.Begun && n == t.Acked+1:
		t.Acked = n
	default:
		return false
	}
	return true
}

// extend finds the block that ends in these 16 bits and is nearest to where the transfer is.
func (t *transfer) extend(block uint16) int64 {
	return t.Acked + int64(int16(block-uint16(t.Acked)))
}

// done says that the client has all of it.
func (t *transfer) done() bool { return t.Begun && t.Acked >= t.blocks() }
