package link

import (
	"io"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
)

// most is how many bytes may wait to leave together: one chunk, and the small frames before it.
const most = frame.MaxData + 64<<10

// A Writer sends frames. It is of one goroutine.
type Writer struct {
	to   io.Writer
	seal *seal.Sealer
	out  []byte
}

// NewWriter sends what s protects.
func NewWriter(to io.Writer, s *seal.Sealer) *Writer {
	return &Writer{to: to, seal: s, out: make([]byte, 0, most+frame.HeaderLen+frame.MaxOverhead)}
}

// Put lets a frame wait for Flush; where too much waits, it is sent first. The payload is as long as the header says,
// and not needed afterwards.
func (w *Writer) Put(h frame.Header, payload []byte) error {
	if len(w.out) > 0 && len(w.out)+len(payload) > most {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w.out = w.seal.Seal(h.Append(w.out), payload)
	return nil
}

// PutFrame is Put of a frame that was made whole: its header, and its payload.
func (w *Writer) PutFrame(b []byte) error {
	h, err := frame.ParseHeader(b)
	if err != nil {
		return err
	}
	return w.Put(h, b[frame.HeaderLen:])
}

// Waiting is how many bytes wait for Flush.
func (w *Writer) Waiting() int { return len(w.out) }

// Flush sends all that waits. After an error the connection is to end: how much of a frame has left is not known.
func (w *Writer) Flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return err
}
