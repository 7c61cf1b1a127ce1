package link_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/link"
	"scaffold.dev/scaffold/internal/boost/seal"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

var modes = []frame.Protection{frame.Sealed, frame.Authenticated, frame.None}

func writer(to io.Writer, m frame.Protection) *link.Writer {
	return link.NewWriter(to, seal.NewSealer(m, seal.Secret{}, 1, seal.FromDialer))
}

func reader(from io.Reader, m frame.Protection) *link.Reader {
	return link.NewReader(from, m, seal.NewOpener(m, seal.Secret{}, 1, seal.FromDialer))
}

// Frames arrive as they were sent, in their order, however the stream is cut into reads and whatever leaves together.
func TestFramesArriveAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(modes).Draw(t, "mode")
		var stream bytes.Buffer
		w := writer(&stream, m)
		var sent []frame.Header
		var chunks [][]byte
		for range rapid.IntRange(1, 30).Draw(t, "frames") {
			h, payload := anyFrame(t)
			if err := w.Put(h, payload); err != nil {
				t.Fatal(err)
			}
			sent, chunks = append(sent, h), append(chunks, payload)
			if rapid.Bool().Draw(t, "flush") {
				if err := w.Flush(); err != nil || w.Waiting() != 0 {
					t.Fatalf("%v, %d bytes wait", err, w.Waiting())
				}
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r := reader(&cut{&stream, rapid.IntRange(1, 5000).Draw(t, "read")}, m)
		for i, want := range sent {
			h, payload, err := r.Next()
			if err != nil || h != want || !bytes.Equal(payload, chunks[i]) {
				t.Fatalf("frame %d: %+v with %d bytes (%v), want %+v with %d", i, h, len(payload), err, want, len(chunks[i]))
			}
		}
		if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last: %v", err)
		}
	})
}

func anyFrame(t *rapid.T) (frame.Header, []byte) {
	session := rapid.Uint64Min(1).Draw(t, "session")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return frame.Ping(rapid.Uint64().Draw(t, "number")), nil
	case 1:
		return frame.End(session, rapid.Uint64Range(0, frame.MaxOffset).Draw(t, "offset")), nil
	case 2:
		b := frame.Refused{Session: session, Reason: frame.NoRoom}.Append(nil)
		h, err := frame.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		return h, b[frame.HeaderLen:]
	}
	n := rapid.SampledFrom([]int{1, 100, 16 << 10, frame.MaxData}).Draw(t, "length")
	payload := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
	return frame.Chunk(session, rapid.Uint64Range(0, 1<<40).Draw(t, "offset"), uint32(n)), payload
}

// cut gives no more than so many bytes at a time.
type cut struct {
	from io.Reader
	most int
}

func (c *cut) Read(p []byte) (int, error) { return c.from.Read(p[:min(len(p), c.most)]) }

// Wherever a stream is cut, the reader says so; it never takes a part of a frame for one.
func TestAStreamThatIsCutIsAnError(t *testing.T) {
	safety.Test(t, safety.Bytes)
	var stream bytes.Buffer
	w := writer(&stream, frame.Sealed)
	for _, h := range []frame.Header{frame.Ping(1), frame.End(1, 2)} {
		if err := w.Put(h, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	all := stream.Bytes()
	for n := range all {
		r := reader(bytes.NewReader(all[:n]), frame.Sealed)
		var err error
		for err == nil {
			_, _, err = r.Next()
		}
		want := link.ErrCut
		if n%(len(all)/2) == 0 {
			want = io.EOF
		}
		if !errors.Is(err, want) {
			t.Fatalf("cut after %d of %d bytes: %v, want %v", n, len(all), err, want)
		}
	}
}

// What has no place, or is none of the frames, is an error that names it; nothing is read after it.
func TestWhatMayNotComeIsNamed(t *testing.T) {
	var stream bytes.Buffer
	w := writer(&stream, frame.Sealed)
	if err := w.Put(frame.Chunk(3, 2, 4), []byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	garbled := bytes.Clone(stream.Bytes())
	garbled[0] = 99
	var of *frame.Error
	if _, _, err := reader(bytes.NewReader(garbled), frame.Sealed).Next(); !errors.As(err, &of) {
		t.Errorf("a frame of no type: %v", err)
	}
	forged := bytes.Clone(stream.Bytes())
	forged[15] ^= 1 // the session
	if _, _, err := reader(bytes.NewReader(forged), frame.Sealed).Next(); !errors.Is(err, seal.ErrForged) {
		t.Errorf("a frame of another session: %v", err)
	}
}

// Frames are sent and received without allocation.
func TestNothingIsAllocatedForAFrame(t *testing.T) {
	for _, m := range modes {
		var stream bytes.Buffer
		stream.Grow(1 << 20)
		w, r := writer(&stream, m), reader(&stream, m)
		payload := make([]byte, 64<<10)
		once := func() {
			if w.Put(frame.Ping(1), nil) != nil || w.Put(frame.Chunk(1, 0, uint32(len(payload))), payload) != nil || w.Flush() != nil {
				t.Fatal("not sent")
			}
			for range 2 {
				if _, _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
			}
		}
		once()
		if n := testing.AllocsPerRun(20, once); n != 0 {
			t.Errorf("%v: %v allocations", m, n)
		}
	}
}

// Whatever comes, a reader returns frames or an error, and never more than was sent.
func FuzzReader(f *testing.F) {
	var stream bytes.Buffer
	w := writer(&stream, frame.None)
	if w.Put(frame.Chunk(3, 2, 4), []byte("data")) != nil || w.Put(frame.End(3, 6), nil) != nil || w.Flush() != nil {
		f.Fatal("not sent")
	}
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reader(bytes.NewReader(b), frame.None)
		for left := len(b); ; {
			h, payload, err := r.Next()
			if err != nil {
				return
			}
			if left -= frame.HeaderLen + len(payload); left < 0 || int(h.Length) != len(payload) {
				t.Fatalf("%+v with %d bytes, out of %d", h, len(payload), len(b))
			}
		}
	})
}
