package link

import (
	"errors"
	"fmt"
	"io"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
)

// A Reader receives frames. It is of one goroutine.
type Reader struct {
	from io.Reader
	open *seal.Opener
	over int // bytes behind a payload
	buf  []byte
	r, w int // of buf: what was read and not returned
	ctl  []byte
}

// NewReader receives what a Writer sent; its Sealer and this Opener are of the same mode.
func NewReader(from io.Reader, m frame.Protection, o *seal.Opener) *Reader {
	return &Reader{from: from, open: o, over: m.Overhead(), buf: make([]byte, most+frame.HeaderLen+frame.MaxOverhead), ctl: make([]byte, 0, small)}
}

// small is more than any frame but DATA has for payload.
const small = 1 << 10

// ErrCut says that a connection ended in the middle of a frame.
var ErrCut = errors.New("the connection ended in the middle of a frame")

// Next waits for a frame. Of DATA the payload is put where place says, which has so many bytes; an error of place is
// returned as it is. The place is written to although the frame may turn out to be forged, so it holds nothing that is
// needed: of a chunk that has arrived before, the second copy gets a place of its own. The payload of other frames is the reader's until Next is called again. io.EOF is returned
// between frames alone.
func (r *Reader) Next(place func(frame.Header) ([]byte, error)) (frame.Header, []byte, error) {
	if err := r.fill(frame.HeaderLen); err != nil {
		return frame.Header{}, nil, err
	}
	head := r.buf[r.r : r.r+frame.HeaderLen]
	h, err := frame.ParseHeader(head)
	if err != nil {
		return h, nil, err
	}
	whole := frame.HeaderLen + int(h.Length) + r.over
	if err := r.fill(whole); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrCut
		}
		return h, nil, err
	}
	head, body := r.buf[r.r:r.r+frame.HeaderLen], r.buf[r.r+frame.HeaderLen:r.r+whole]
	dst := r.ctl[:0]
	if h.Type == frame.TypeData {
		if dst, err = place(h); err != nil {
			return h, nil, err
		}
		if len(dst) != int(h.Length) {
			panic(fmt.Sprintf("link: a place of %d bytes for %d", len(dst), h.Length))
		}
	}
	payload, err := r.open.Open(dst[:0], head, body)
	if err != nil {
		return h, nil, err
	}
	r.r += whole
	return h, payload, nil
}

// fill reads until n bytes wait. It reads as much as there is: small frames come many at a time.
func (r *Reader) fill(n int) error {
	if r.w-r.r >= n {
		return nil
	}
	if r.r+n > len(r.buf) || r.r == r.w {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	for r.w-r.r < n {
		got, err := r.from.Read(r.buf[r.w:])
		r.w += got
		if err != nil && r.w-r.r < n {
			if errors.Is(err, io.EOF) && r.w != r.r {
				return ErrCut
			}
			return err
		}
	}
	return nil
}
