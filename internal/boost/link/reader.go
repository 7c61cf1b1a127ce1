package link

import (
	"errors"
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
}

// NewReader receives what a Writer sent; its Sealer and this Opener are of the same mode.
func NewReader(from io.Reader, m frame.Protection, o *seal.Opener) *Reader {
	return &Reader{from: from, open: o, over: m.Overhead(), buf: make([]byte, most+frame.HeaderLen+frame.MaxOverhead)}
}

// ErrCut says that a connection ended in the middle of a frame.
var ErrCut = errors.New("the connection ended in the middle of a frame")

// Next waits for a frame. Its payload is the reader's until Next is called again: it is opened where it lies, for a frame that
// turns out to be forged may write to no place that somebody else reads. io.EOF is returned between frames alone.
func (r *Reader) Next() (frame.Header, []byte, error) {
	if err := r.fill(frame.HeaderLen); err != nil {
		return frame.Header{}, nil, err
	}
	h, err := frame.ParseHeader(r.buf[r.r : r.r+frame.HeaderLen])
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
	payload, err := r.open.Open(r.buf[r.r : r.r+whole])
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
