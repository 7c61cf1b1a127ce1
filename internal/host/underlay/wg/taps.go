package wg

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/tuntap"
)

// taps are the ends of all tunnels; to wireguard-go they are one TUN device, whose packets are the frames of the
// TAP devices in VXLAN. Frames pass uncut between the kernel and this process, as they do between the kernel and
// wireguard-go's own device; the VXLAN is made here, for the kernel's would cut them to packets first.
type taps struct {
	bind   *bind
	frames chan *frame // from all, on their way to wireguard-go
	events chan tun.Event
	gone   chan struct{}
	end    sync.Once

	mu  sync.RWMutex
	all map[netip.Addr]*tap // by the far end's address within WireGuard

	now  *frame // that is being cut; of the goroutine that reads
	rest splitter
}

// A frame is what was read from one device: a struct virtio_net_hdr, and an Ethernet frame of at most 64 kB.
type frame struct {
	room   [vnetLength + etherLength + 1<<16]byte
	length int
	from   *tap
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// framesWaiting bounds what was taken from the kernel and waits for its turn.
const framesWaiting = 8

func newTaps(b *bind) (*taps, error) {
	f, err := os.OpenFile(tuntap.Path, os.O_RDWR, 0) // else it is found out with the first tunnel
	if err != nil {
		return nil, err
	}
	f.Close()
	return &taps{bind: b, frames: make(chan *frame, framesWaiting), events: make(chan tun.Event), gone: make(chan struct{}), all: map[netip.Addr]*tap{}}, nil
}

// open makes the end of a tunnel.
func (t *taps) open(in underlay.Port) error {
	t.drop(in)
	var p *tap
	err := t.bind.there(func() (err error) {
		p, err = openTap(in)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.prepare(in); err != nil {
		p.file.Close()
		return err
	}
	t.mu.Lock()
	t.all[in.Remote] = p
	t.mu.Unlock()
	go t.take(p) // ends with the device
	return nil
}

// prepare gives the interface its size and the length of its queue.
func (t *taps) prepare(in underlay.Port) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(t.bind.into.Fd()))
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(in.Name)
	if err != nil {
		return err
	}
	return errors.Join(h.LinkSetMTU(link, in.MTU), h.LinkSetTxQLen(link, tapQueue))
}

// drop ends one; its interface goes with it.
func (t *taps) drop(in underlay.Port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.all[in.Remote]; p != nil {
		p.file.Close()
		delete(t.all, in.Remote)
	}
}

// take reads frames from a device until it is closed, or somebody removes it.
func (t *taps) take(p *tap) {
	for {
		f, err := p.read()
		if err != nil {
			return
		}
		select {
		case t.frames <- f:
		case <-t.gone:
			return
		}
	}
}

// Read gives wireguard-go packets of one frame, and of those that wait behind it.
func (t *taps) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	for n < len(bufs) {
		if t.now == nil && !t.begin(n == 0) {
			break
		}
		room := bufs[n][offset:]
		length := t.rest.next(room[insideHead:])
		if length == 0 {
			frames.Put(t.now)
			t.now = nil
			continue
		}
		wrap(room[:insideHead+length], t.now.from.in)
		sizes[n] = insideHead + length
		n++
	}
	if n == 0 {
		return 0, os.ErrClosed
	}
	return n, nil
}

// begin takes the next frame, and waits for one if told to; false: there is none.
func (t *taps) begin(wait bool) bool {
	for {
		var f *frame
		if wait {
			select {
			case f = <-t.frames:
			case <-t.gone:
				return false
			}
		} else {
			select {
			case f = <-t.frames:
			default:
				return false
			}
		}
		if f.length > vnetLength {
			var ok bool
			if t.rest, ok = split(readVnet(f.room[:]), f.room[vnetLength:f.length]); ok {
				t.now = f
				return true
			}
		}
		frames.Put(f)
	}
}

// Write hands what WireGuard has decrypted to the devices.
func (t *taps) Write(bufs [][]byte, offset int) (int, error) {
	var last *tap
	var errs []error
	flush := func() {
		if last != nil {
			errs = append(errs, last.join.flush(last.write))
			last.mu.Unlock()
		}
	}
	for _, b := range bufs {
		from, f, ok := unwrap(b[offset:])
		if !ok {
			continue
		}
		if p := t.at(from); p != last {
			flush()
			if last = p; p != nil {
				p.mu.Lock()
			}
		}
		if last != nil {
			at := len(b) - len(f)
			last.join.add(b[at-vnetLength:]) // over the headers that nobody wants any more
		}
	}
	flush()
	return len(bufs), errors.Join(errs...)
}

func (t *taps) at(from netip.Addr) *tap {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[from]
}

// MTU has packets not filled up to multiples of 16: what a tunnel carries is exactly what its path leaves. A packet
// that is larger than the device says it takes counts by what is over a multiple of that, here nothing.
func (t *taps) MTU() (int, error) { return 1, nil }

// Close ends all of them.
func (t *taps) Close() error {
	t.end.Do(func() {
		close(t.gone)
		close(t.events)
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, in := range slices.Collect(maps.Keys(t.all)) {
			t.all[in].file.Close()
			delete(t.all, in)
		}
	})
	return nil
}

// The rest of what wireguard-go asks of a device.

func (t *taps) File() *os.File           { return nil }
func (t *taps) Name() (string, error)    { return "taps", nil }
func (t *taps) Events() <-chan tun.Event { return t.events }
func (t *taps) BatchSize() int           { return conn.IdealBatchSize }
